package ptyrun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// append appends an event with those of the fields (name, value, name, …) that have a value, and folds it at once: what
// this runner does is not news to it when it comes back from the log. Only what is about messages is. If appending fails
// (a lock, a full disk) it is tried again: a missing state change would mislead for ever. Of very many that wait the oldest
// ones are left out.
func (r *runner) append(e wire.Event, fields ...string) {
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			e = e.With(fields[i], fields[i+1])
		}
	}
	address := r.Box.Address()
	e.Source, e.Team, e.Agent, e.At = cmp.Or(e.Source, source), address.Team, address.Agent, r.now().UTC()
	hasJob := false
	switch e.Kind {
	case wire.EventInjectionFailed, wire.EventInjected, wire.EventUnread: // the mailbox appends what comes before them
	default:
		hasJob = len(r.unlogged) >= maxUnlogged && r.leaveOut()
		r.unlogged = append(r.unlogged, &e)
		seq := r.state.Seq
		r.foldEvent(&e, e.At)
		r.state.Seq = seq // it has no number yet
	}
	if r.waiting.add(&e); !hasJob {
		r.events.do(r.appendNext)
	}
}

// appendNext appends the event that has waited longest.
func (r *runner) appendNext() {
	e := r.waiting.take()
	r.retry("appending events", func() error {
		err := r.Box.Log().Append(context.Background(), *e)
		if errors.Is(err, eventlog.ErrNoEvent) { // it will never get in
			r.Log.Error("appending events", "err", err)
			r.post(func() { r.isFolded(e) })
			err = nil
		}
		r.logFails.Store(err != nil)
		return err
	})
}

// maxUnlogged is how many events may wait for the log.
const maxUnlogged = 1024

// leaveOut takes the oldest event from those that wait for the log, if there is one a state change, since a later one says
// more. The job that would append it appends another one.
func (r *runner) leaveOut() (isOut bool) {
	for _, isLess := range []bool{true, false} {
		for i, e := range r.unlogged {
			if (e.Kind == "state_change") == isLess && r.waiting.remove(e) {
				r.Log.Error("the log cannot be written: an event is left out", "kind", e.Kind)
				r.unlogged = slices.Delete(r.unlogged, i, i+1)
				return true
			}
		}
	}
	return false
}

// An eventQueue holds the events that are to be appended, in order.
type eventQueue struct {
	lock   sync.Mutex
	events []*wire.Event
}

func (q *eventQueue) add(e *wire.Event) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.events = append(q.events, e)
}

func (q *eventQueue) take() (first *wire.Event) {
	q.lock.Lock()
	defer q.lock.Unlock()
	first = q.events[0]
	q.events = slices.Delete(q.events, 0, 1)
	return first
}

// remove reports false if it has not got the event any more.
func (q *eventQueue) remove(e *wire.Event) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	i := slices.Index(q.events, e)
	if i >= 0 {
		q.events = slices.Delete(q.events, i, i+1)
	}
	return i >= 0
}

// isFolded reports whether an event from the log is one that this runner has appended.
func (r *runner) isFolded(e *wire.Event) bool {
	var encoded []byte
	i := slices.IndexFunc(r.unlogged, func(appended *wire.Event) bool {
		if appended.Kind != e.Kind {
			return false
		}
		own := *appended
		own.Seq, own.At = e.Seq, e.At // the log's own
		if encoded == nil {
			encoded = e.Append(nil)
		}
		return bytes.Equal(own.Append(nil), encoded)
	})
	if i >= 0 {
		r.unlogged = slices.Delete(r.unlogged, 0, i+1) // they are logged in order
	}
	return i >= 0
}

func (r *runner) appendStateChange(previous, now reducer.Activity, detail string, from reducer.Source, more ...string) {
	e := wire.Event{Kind: "state_change"}.With("previous", string(previous)).With("new", string(now))
	r.append(e, append([]string{"detail", detail, "evidence", string(from)}, more...)...)
}
