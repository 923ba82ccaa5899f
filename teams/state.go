package teams

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// snapshotAfter is how many events beyond the snapshot make a new one worth writing:
// about as many as are folded in the time that it takes to replace a file.
const snapshotAfter = 32

// State folds a member's events: from state.json where that fits the log, else from base.json, else all there are. A
// long fold is kept in state.json, if that can be written; nothing depends on it.
func (t *Team) State(name wire.Name) (*reducer.State, error) {
	f := stateFold{log: t.Box(name).Log(), of: t.Box(name).Address()}
	defer f.close()
	if !f.startAtSnapshot() {
		if err := f.startAtBase(); err != nil {
			return nil, err
		}
	}
	n, err := f.foldTo(0)
	if err != nil {
		return nil, err
	}
	if n >= snapshotAfter {
		if s, err := f.snapshot(); err == nil && s.CRC != 0 {
			f.log.SaveSnapshot(s)
		}
	}
	return &f.state, nil
}

// ArchiveEvents moves a member's old events to the archive, with the fold up to them kept in base.json.
func (t *Team) ArchiveEvents(ctx context.Context, name wire.Name, before time.Time, dry bool) (mailbox.Moved, error) {
	f := stateFold{log: t.Box(name).Log(), of: t.Box(name).Address()}
	defer f.close()
	events, bytes, err := f.log.ArchiveBefore(ctx, before, dry, func(upTo uint64) (s eventlog.Snapshot, err error) {
		if err = f.startAtBase(); err == nil {
			_, err = f.foldTo(upTo)
		}
		if err == nil {
			s, err = f.snapshot()
		}
		return s, err
	})
	return mailbox.Moved{Events: events, Bytes: bytes}, err
}

type stateFold struct {
	log    *eventlog.Log
	of     wire.Address
	state  reducer.State
	cursor *eventlog.Cursor
	base   uint64 // the base at which the fold began anew, when gc overtook it
}

func (f *stateFold) close() {
	if f.cursor != nil {
		f.cursor.Close()
	}
}

// load takes a snapshot's state, unless it is another version's or another agent's.
func (f *stateFold) load(s eventlog.Snapshot) bool {
	f.state = reducer.State{}
	return s.Version == reducer.Version && json.Unmarshal(s.State, &f.state) == nil && f.state.Seq == s.Seq &&
		f.state.Agent == f.of.Agent && f.state.Team == f.of.Team
}

func (f *stateFold) startAtSnapshot() (ok bool) {
	s, ok := f.log.Snapshot()
	if !ok || !f.load(s) {
		return false
	}
	f.cursor, ok = f.log.Resume(s)
	return ok
}

func (f *stateFold) startAtBase() error {
	s, ok, err := f.log.Base()
	if err != nil {
		return err
	}
	f.close()
	if f.cursor = f.log.Follow(s.Seq); !ok || !f.load(s) { // spoilt, or of another version
		f.cursor, f.state = f.log.FollowAll(), reducer.State{}
	}
	return nil
}

// foldTo folds what follows, up to an event (0: all there is), and counts it.
func (f *stateFold) foldTo(upTo uint64) (n int, err error) {
	for upTo == 0 || f.cursor.Seq() < upTo {
		e, gap, err := f.cursor.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
		if gap != nil {
			// What is missing was perhaps archived a moment ago: then the base holds it.
			if s, ok, _ := f.log.Base(); ok && s.Seq >= gap.To && s.Seq > f.base {
				f.base = s.Seq // once: a base that is of no use changes nothing
				if err := f.startAtBase(); err != nil {
					return n, err
				}
				continue
			}
		}
		f.state.Apply(reducer.Input{Now: e.At, Event: &e})
		n++
	}
	return n, nil
}

func (f *stateFold) snapshot() (eventlog.Snapshot, error) {
	f.state.Seq = f.cursor.Seq() // also of events that the reducer made nothing of
	data, err := json.Marshal(&f.state)
	s := eventlog.Snapshot{Version: reducer.Version, State: data}
	f.cursor.Mark(&s)
	return s, err
}
