package ptyrun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// unlogged is an event that was folded when it was appended.
type unlogged struct {
	wire.Event
	*job // that appends it
}

// maxUnlogged is how many events may wait for the log.
const maxUnlogged = 1024

// append appends an event with those of the fields (name, value, name, …) that have a value, and folds it at once: what
// this runner does is not news to it when it comes back from the log. Only what is about messages is. If appending fails
// (a lock, a full disk) it is tried again: a missing state change would mislead for ever.
func (r *runner) append(e wire.Event, fields ...string) {
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			e = e.With(fields[i], fields[i+1])
		}
	}
	address := r.Box.Address()
	e.Source, e.Team, e.Agent, e.At = cmp.Or(e.Source, source), address.Team, address.Agent, r.now().UTC()
	log := func() {
		r.retry("appending events", func() error {
			err := r.Box.Log().Append(context.Background(), e)
			if errors.Is(err, eventlog.ErrNoEvent) { // it will never get in
				r.Log.Error("appending events", "err", err)
				r.post(func() { r.isFolded(&e) })
				err = nil
			}
			r.logFails.Store(err != nil)
			return err
		})
	}
	switch e.Kind {
	case wire.EventInjectionFailed, wire.EventInjected, wire.EventUnread: // the mailbox appends what comes before them
		r.events.do(log)
	default:
		if len(r.unlogged) >= maxUnlogged {
			r.leaveOut()
		}
		r.unlogged = append(r.unlogged, unlogged{e, r.events.do(log)})
		seq := r.state.Seq
		r.foldEvent(&e, e.At)
		r.state.Seq = seq // it has no number yet
	}
}

// leaveOut takes the oldest event from those that wait for the log, if there is one a state change: a later one says more.
func (r *runner) leaveOut() {
	for _, isChange := range []bool{true, false} {
		for i, e := range r.unlogged {
			if (e.Kind == wire.StateChange) == isChange && r.events.undo(e.job) {
				r.Log.Error("the log cannot be written: an event is left out", "kind", e.Kind)
				r.unlogged = slices.Delete(r.unlogged, i, i+1)
				return
			}
		}
	}
}

// isFolded reports whether an event from the log is one that this runner has appended.
func (r *runner) isFolded(e *wire.Event) bool {
	i := slices.IndexFunc(r.unlogged, func(appended unlogged) bool {
		own := appended.Event
		own.Seq, own.At = e.Seq, e.At // the log's own
		return own.Kind == e.Kind && bytes.Equal(own.Append(nil), e.Append(nil))
	})
	if i >= 0 {
		r.unlogged = slices.Delete(r.unlogged, 0, i+1) // they are logged in order
	}
	return i >= 0
}

func (r *runner) appendStateChange(previous, now reducer.Activity, detail string, from reducer.Source, more ...string) {
	e := wire.Event{Kind: wire.StateChange}.With("previous", string(previous)).With("new", string(now))
	r.append(e, append([]string{"detail", detail, "evidence", string(from)}, more...)...)
}
