// Package run holds what all have in common who have a part in a run: the [Run] itself, with its loop, the agent's log and
// what that says by now; and what an agent is for them: an [Agent], which is given a [Text], and asks.
package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/questions"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/record"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// A Run is a run as all know it who have a part in it. Only the loop touches it, but for AwaitLogged, WaitLogged, and Append
// of an event that is not folded.
type Run struct {
	*loop.Loop
	ID        string       // its ATM_RUN
	Box       *maildir.Box // the agent's
	Timing    *Timing
	Recording *record.Writer

	State      reducer.State // what the events say by now
	Agent      Agent         // that runs; nil between two programs
	Questions  questions.Questions
	IsStopping bool      // it is being stopped
	LastKey    time.Time // a person's

	Fold   func(e *wire.Event, now time.Time) // folds an event into State, and does what follows from that
	Notify func(line string)                  // shows people a line of atm's own

	events   loop.Worker // appends events
	unlogged []unlogged  // events that did not come back from the log yet
	logFails atomic.Bool // the last one was not appended
}

// unlogged is an event that was folded when it was appended.
type unlogged struct {
	wire.Event
	*loop.Job // that appends it
}

// maxUnlogged is how many events may wait for the log.
const maxUnlogged = 1024

// Append appends an event with those of the fields (name, value, name, …) that have a value, and folds it at once: what
// this runner does is not news to it when it comes back from the log. Only what is about messages is. If appending fails
// (a lock, a full disk) it is tried again: a missing state change would mislead for ever.
func (r *Run) Append(e wire.Event, fields ...string) {
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			e = e.With(fields[i], fields[i+1])
		}
	}
	address := r.Box.Address()
	e.Source, e.Team, e.Agent, e.At = cmp.Or(e.Source, wire.SourcePTY), address.Team, address.Agent, r.Now().UTC()
	log := func() {
		r.Retry("appending events", func() error {
			err := r.Box.Log().Append(context.Background(), e)
			if errors.Is(err, eventlog.ErrNoEvent) { // it will never get in
				r.Log.Error("appending events", "err", err)
				r.Post(func() { r.IsOwn(&e) })
				err = nil
			}
			r.logFails.Store(err != nil)
			return err
		})
	}
	switch e.Kind {
	case wire.EventInjectionFailed, wire.EventInjected, wire.EventUnread: // the mailbox appends what comes before them
		r.events.Do(log)
	default:
		if len(r.unlogged) >= maxUnlogged {
			r.leaveOut()
		}
		r.unlogged = append(r.unlogged, unlogged{e, r.events.Do(log)})
		seq := r.State.Seq
		r.Fold(&e, e.At)
		r.State.Seq = seq // it has no number yet
	}
}

// leaveOut takes the oldest event from those that wait for the log, if there is one a state change: a later one says more.
func (r *Run) leaveOut() {
	for _, isChange := range []bool{true, false} {
		for i, e := range r.unlogged {
			if (e.Kind == wire.StateChange) == isChange && r.events.Undo(e.Job) {
				r.Log.Error("the log cannot be written: an event is left out", "kind", e.Kind)
				r.unlogged = slices.Delete(r.unlogged, i, i+1)
				return
			}
		}
	}
}

// IsOwn reports whether an event from the log is one that this runner has appended, and so folded.
func (r *Run) IsOwn(e *wire.Event) bool {
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

// AppendChange appends that the agent does something else now.
func (r *Run) AppendChange(previous, now reducer.Activity, detail string, from reducer.Source, more ...string) {
	e := wire.Event{Kind: wire.StateChange}.With("previous", string(previous)).With("new", string(now))
	r.Append(e, append([]string{"detail", detail, "evidence", string(from)}, more...)...)
}

// ReportError reports an error that concerns no message: in the log, as an event and on the attached terminals.
func (r *Run) ReportError(what string) {
	r.Log.Error(what)
	r.Append(wire.Event{Kind: "stream_error"}.With("error_summary", what))
	r.Notify(what)
}

// IsLogged reports whether what this run has done is in the log, and has come back from there.
func (r *Run) IsLogged() bool { return len(r.unlogged) == 0 }

// LogPatience is how long to wait for the last events of a program to be logged: on a busy disk that takes a while, in a
// log that fails it may take for ever.
func (r *Run) LogPatience() time.Duration {
	if r.logFails.Load() {
		return min(time.Second, r.Timing.Logged)
	}
	return r.Timing.Logged
}

// AfterLogged calls f when what was reported up to now is in the log, and WaitLogged waits for that.
func (r *Run) AfterLogged(f func()) { r.events.Do(f) }
func (r *Run) WaitLogged()          { r.events.Wait() }

// AwaitLogged waits until what was reported up to now is in the log, for whoever looks there next.
func (r *Run) AwaitLogged(within time.Duration) {
	logged := make(chan struct{})
	r.AfterLogged(func() { close(logged) })
	select {
	case <-logged:
	case <-r.Context().Done():
	case <-time.After(within):
	}
}
