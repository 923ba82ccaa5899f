// Package snapshot folds the events of an agent to its state, and keeps the fold in state.json, which is only a cache.
package snapshot

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/reducer"
)

// writeAfter is the number of events after which a new snapshot is written: it takes as long to fold that many as to
// replace a file.
const writeAfter = 32

const maxSize = 1 << 20 // bytes

// snapshot is what state.json has: the fold of a log up to one of its events.
type snapshot struct {
	Version int               `json:"version"` // of the fold
	At      eventlog.Position `json:"at"`
	State   reducer.State     `json:"state"`
}

// State folds an agent's events: from state.json if it matches the log, else from the first event, which may be
// archived. After a long fold it updates state.json.
func State(b *maildir.Box) (*reducer.State, error) {
	s, events := load(b)
	defer func() { events.Close() }()
	n := 0
	for {
		e, err := events.Next()
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
	if n >= writeAfter {
		s.Version, s.At = reducer.Version, events.Position()
		if data, err := json.Marshal(&s); err == nil {
			b.Store().Dir().Replace(b.In(file), append(data, '\n'), false) // Resume refuses what a power cut leaves
		}
	}
	return &s.State, nil
}

const file = "state.json"

// Remove removes an agent's state.json, which is then made anew.
func Remove(b *maildir.Box) error { return b.Store().Dir().Remove(b.In(file)) }

// load returns an agent's snapshot, and the events after it. If it is not one of this log, this agent and this version of
// the fold, it is empty.
func load(b *maildir.Box) (s snapshot, events *eventlog.Reader) {
	log := b.Log()
	data, err := b.Store().Dir().ReadFile(b.In(file), maxSize)
	if err == nil && json.Unmarshal(data, &s) == nil && s.Version == reducer.Version {
		isOurs := s.State.Agent == b.Agent() && s.State.Team == b.Store().Team && s.State.Seq == s.At.Seq
		if events, ok := log.Resume(s.At); ok {
			if isOurs {
				return s, events
			}
			events.Close()
		}
	}
	return snapshot{}, log.Follow(0)
}
