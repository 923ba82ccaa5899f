package teamdir

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// snapshotAfter is the number of events after which a new snapshot is written: it takes as long to fold that many as to
// replace a file.
const snapshotAfter = 32

const maxSnapshot = 1 << 20 // bytes

// snapshot is what state.json has: the fold of a log up to one of its events.
type snapshot struct {
	Version int               `json:"version"` // of the fold
	At      eventlog.Position `json:"at"`
	State   reducer.State     `json:"state"`
}

// State folds a member's events: from state.json if it matches the log, else from the first event, which may be
// archived. After a long fold it updates state.json, which is only a cache.
func (t *Team) State(name wire.Name) (*reducer.State, error) {
	s, events := t.loadSnapshot(name)
	defer func() { events.Close() }()
	n := 0
	for !events.IsEmpty() {
		e, _, err := events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		s.State.Apply(&e)
		n++
	}
	s.State.Seq = events.Seq() // includes events that the reducer ignores
	if n >= snapshotAfter {
		s.Version, s.At = reducer.Version, events.Position()
		if data, err := json.Marshal(&s); err == nil {
			t.Dir().Replace(stateFile(name), append(data, '\n'), false) // Resume refuses what a power cut leaves
		}
	}
	return &s.State, nil
}

func stateFile(name wire.Name) string { return string(name) + "/state.json" }

// SnapshotVersion returns the version of the fold that made a member's state.json; 0: there is none. State makes one of
// another version than reducer.Version anew.
func (t *Team) SnapshotVersion(name wire.Name) int {
	var s struct{ Version int }
	if data, err := t.Dir().ReadFile(stateFile(name), maxSnapshot); err != nil || json.Unmarshal(data, &s) != nil {
		return 0
	}
	return s.Version
}

// loadSnapshot returns a member's snapshot, and the events after it. If it is not one of this log, this member and this
// version of the fold, it is empty.
func (t *Team) loadSnapshot(name wire.Name) (s snapshot, events *eventlog.Reader) {
	log := t.Box(name).Log()
	data, err := t.Dir().ReadFile(stateFile(name), maxSnapshot)
	if err == nil && json.Unmarshal(data, &s) == nil && s.Version == reducer.Version {
		isOurs := s.State.Agent == name && s.State.Team == t.Name && s.State.Seq == s.At.Seq
		if events, ok := log.Resume(s.At); ok {
			if isOurs {
				return s, events
			}
			events.Close()
		}
	}
	return snapshot{}, log.Follow(0)
}
