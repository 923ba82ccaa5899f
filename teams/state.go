package teams

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// snapshotAfter is the number of events after which a new snapshot is written: it takes as long to fold that many as to
// replace a file.
const snapshotAfter = 32

// State folds a member's events: from state.json if it matches the log, else from base.json, else from the first event.
// After a long fold it updates state.json, which is only a cache.
func (t *Team) State(name wire.Name) (*reducer.State, error) {
	f := stateFold{log: t.Box(name).Log()}
	defer f.close()
	s, ok := f.log.Snapshot()
	if ok = ok && f.load(s); ok {
		f.cursor, ok = f.log.Resume(s)
	}
	if !ok {
		if err := f.startAtBase(); err != nil {
			return nil, err
		}
	}
	n, err := f.foldTo(0)
	if err == nil && n >= snapshotAfter {
		if s, err := f.snapshot(); err == nil && s.CRC != 0 {
			f.log.SaveSnapshot(s)
		}
	}
	return &f.state, err
}

// ArchiveEvents moves a member's old events to the archive, and writes the fold up to them to base.json. Sessions are
// updated before that, so that they need not read the archive.
func (t *Team) ArchiveEvents(ctx context.Context, name wire.Name, before time.Time, dry bool) (moved maildir.Moved, err error) {
	sessions, _, err := t.Sessions().List()
	for _, s := range sessions {
		if err == nil && !dry && s.AgentID == string(name) {
			_, err = t.RefreshSession(ctx, s)
		}
	}
	if err != nil {
		return moved, err
	}
	f := stateFold{log: t.Box(name).Log()}
	defer f.close()
	fold := func(upTo uint64) (s eventlog.Snapshot, err error) {
		if err = f.startAtBase(); err == nil {
			_, err = f.foldTo(upTo)
		}
		if err != nil {
			return s, err
		}
		return f.snapshot()
	}
	moved.Events, moved.Bytes, err = f.log.ArchiveBefore(ctx, before, dry, fold)
	return moved, err
}

type stateFold struct {
	log    *eventlog.Log
	state  reducer.State
	cursor *eventlog.Cursor
}

func (f *stateFold) close() { f.cursor.Close() }

// load loads a snapshot's state, and reports whether it is one of this version and agent.
func (f *stateFold) load(s eventlog.Snapshot) bool {
	var state reducer.State
	if s.Version != reducer.Version || json.Unmarshal(s.State, &state) != nil {
		return false
	}
	isOurs := state.Agent == f.log.Owner.Agent && state.Team == f.log.Owner.Team
	if !isOurs || state.Seq != s.Seq {
		return false
	}
	f.state = state
	return true
}

func (f *stateFold) startAtBase() error {
	s, ok, err := f.log.Base()
	if err != nil {
		return err
	}
	if ok && f.load(s) {
		f.cursor = f.log.Follow(s.Seq)
	} else { // damaged, or of another version
		f.cursor, f.state = f.log.Follow(0), reducer.State{}
	}
	return nil
}

// foldTo folds the events up to a sequence number, or with 0 all, and returns how many.
func (f *stateFold) foldTo(upTo uint64) (n int, err error) {
	for upTo == 0 || f.cursor.Seq() < upTo {
		e, _, err := f.cursor.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
		f.state.Apply(&e)
		n++
	}
	return n, nil
}

func (f *stateFold) snapshot() (s eventlog.Snapshot, err error) {
	f.state.Seq = f.cursor.Seq() // includes events that the reducer ignores
	s.Version = reducer.Version
	s.State, err = json.Marshal(&f.state)
	f.cursor.Mark(&s)
	return s, err
}
