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

// foldedAnew is after how many events beyond the snapshot a new one is
// written: about as many as are folded in the time that it takes to replace a
// file.
const foldedAnew = 32

// State folds a member's events: from state.json where that fits the log, else
// from base.json, else from the first. What took long is kept in state.json,
// if that can be written; nothing depends on it.
func (t *Team) State(name wire.Name) (*reducer.State, error) {
	f := folding{box: t.Box(name)}
	defer f.close()
	if !f.cached() {
		if err := f.restart(); err != nil {
			return nil, err
		}
	}
	n, err := f.on(0)
	if err != nil {
		return nil, err
	}
	if n >= foldedAnew {
		f.save()
	}
	return &f.state, nil
}

// folding is a fold under way.
type folding struct {
	box   *mailbox.Box
	state reducer.State
	at    *eventlog.Cursor
	begun uint64 // the base at which the fold began anew, when gc overtook it
}

func (f *folding) close() {
	if f.at != nil {
		f.at.Close()
	}
}

// cached begins at state.json, if the log holds the event it stopped at.
func (f *folding) cached() bool {
	s, ok := f.box.Log().Snapshot()
	if !ok || !f.take(s) {
		return false
	}
	f.at, ok = f.box.Log().Resume(s)
	return ok
}

func (f *folding) take(s eventlog.Snapshot) bool {
	f.state = reducer.State{}
	return s.Version == reducer.Version && json.Unmarshal(s.State, &f.state) == nil && f.state.Seq == s.Seq &&
		f.state.Agent == f.box.Agent() && f.state.Team == f.box.Address().Team
}

// restart begins at base.json, or at the first event.
func (f *folding) restart() error {
	after := uint64(0)
	s, ok, err := f.box.Log().Base()
	if err != nil {
		return err
	}
	if ok && f.take(s) {
		after = s.Seq
	} else {
		f.state = reducer.State{}
	}
	f.at = f.box.Log().Follow(after)
	return nil
}

// on folds what follows, up to an event (0: all there is), and counts it.
func (f *folding) on(upTo uint64) (n int, err error) {
	for upTo == 0 || f.at.Seq() < upTo {
		e, gap, err := f.at.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
		if gap != nil {
			// What is missing was perhaps archived a moment ago: then the base holds it.
			if s, ok, err := f.box.Log().Base(); err != nil {
				return n, err
			} else if ok && s.Seq >= gap.To && s.Seq > f.begun {
				f.begun = s.Seq // once: a base that is of no use changes nothing
				f.close()
				if err := f.restart(); err != nil {
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

func (f *folding) snapshot() (eventlog.Snapshot, error) {
	// The log's number counts, not the newest the reducer made something of.
	f.state.Seq = f.at.Seq()
	data, err := json.Marshal(&f.state)
	s := eventlog.Snapshot{Version: reducer.Version, State: data}
	f.at.Mark(&s)
	return s, err
}

func (f *folding) save() {
	if s, err := f.snapshot(); err == nil && s.CRC != 0 {
		f.box.Log().SaveSnapshot(s)
	}
}

// ArchiveEvents moves a member's old events to the archive, with the fold up
// to them kept in base.json.
func (t *Team) ArchiveEvents(ctx context.Context, name wire.Name, before time.Time, dry bool) (mailbox.Moved, error) {
	box := t.Box(name)
	events, bytes, err := box.Log().ArchiveBefore(ctx, before, dry, func(upTo uint64) (eventlog.Snapshot, error) {
		f := folding{box: box}
		defer f.close()
		if err := f.restart(); err != nil {
			return eventlog.Snapshot{}, err
		}
		if _, err := f.on(upTo); err != nil {
			return eventlog.Snapshot{}, err
		}
		return f.snapshot()
	})
	return mailbox.Moved{Events: events, Bytes: bytes}, err
}
