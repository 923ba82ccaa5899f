package ptyrun

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/cast"
	"github.com/agentteammail/atm/internal/child"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// runner is all state of a run. The loop alone touches it; others post.
type runner struct {
	Options
	ctx   context.Context
	waits Waits
	log   *slog.Logger
	wg    sync.WaitGroup

	calls chan func()   // for the loop
	over  chan struct{} // closed when the loop has ended

	ledger *ledger
	clerk  *clerk
	record *cast.Writer
	state  reducer.State
	prog   *program // nil between two programs
	tries  restarts
	exit   Exit
	ended  bool

	queue     []wire.ID // named by the reducer to be handed over, in order
	typing    *typing   // under way
	prompted  bool      // the first prompt was typed, or given up
	question  *question // on the screen
	viewers   map[*viewer]bool
	lastHuman time.Time
	stopping  *stopping
	again     bool // a restart was asked for

	dir   *atomicfile.Dir // run/
	held  []byte          // a person's keys, while a text of ours is on its way in
	retry time.Time       // of a claim that failed

	// The turn that only the screen tells of.
	turnOurs bool   // a text of ours began it, and its end has not been told
	turnText string // that
	turnFrom uint64 // how far the screen had scrolled
	cut      bool   // it was interrupted by us

	undone *undone // a text whose turn was interrupted
	retell string  // what of that goes in again, with the next text
}

// Run runs the agent until its program has ended for good, or ctx has, or
// somebody stopped it. The caller holds the runner lock.
func Run(ctx context.Context, o Options) (Exit, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &runner{
		Options: o, ctx: context.WithoutCancel(ctx), waits: o.waits(), log: o.logger(), state: o.State,
		calls: make(chan func(), 64), over: make(chan struct{}), viewers: map[*viewer]bool{},
	}
	r.tries = restarts{policy: o.Restart, first: r.waits.Backoff}
	var err error
	if r.dir, err = openRun(o.Box, true); err != nil {
		return r.exit, err
	}
	defer r.dir.Close()
	if err := child.Subreaper(); err != nil {
		return r.exit, err
	}
	dir := r.dir.Path()
	server, err := control.Listen(dir)
	if err != nil {
		return r.exit, err
	}
	r.record, err = cast.Create(cast.Options{
		Path: filepath.Join(dir, "screen.cast"), Cols: o.Cols, Rows: o.Rows,
		Command: joined(o.Command), Title: string(o.Box.Agent()), Repaint: r.repaint,
	})
	if err != nil {
		return r.exit, errors.Join(err, server.Close())
	}
	inbox, err := watcher.Open(ctx, []*mailbox.Box{o.Box}, watcher.Options{
		Messages: true, Existing: true, Events: true, After: map[wire.Address]uint64{o.Box.Address(): o.State.Seq},
	})
	if err != nil {
		return r.exit, errors.Join(err, server.Close(), r.record.Close())
	}
	r.ledger, r.clerk = openLedger(o.Box, r.log), openClerk()
	serving, stop := context.WithCancel(r.ctx)
	r.wg.Go(func() { server.Serve(serving, handler{r}) })
	entries := make(chan watcher.Entry, 16)
	r.wg.Go(func() { r.hear(serving, inbox, entries) })

	err = r.loop(ctx.Done(), entries)
	close(r.over)
	stop()
	err = errors.Join(err, inbox.Close(), server.Close(), r.record.Close())
	r.wg.Wait()
	r.clerk.close()
	r.ledger.close()
	return r.exit, err
}

// hear passes on what the watcher tells.
func (r *runner) hear(ctx context.Context, w *watcher.Watcher, to chan<- watcher.Entry) {
	for {
		e, err := w.Next(ctx)
		if err != nil {
			return
		}
		select {
		case to <- e:
		case <-r.over:
			return
		}
	}
}

// post has the loop call f, unless it has ended.
func (r *runner) post(f func()) bool {
	select {
	case r.calls <- f:
		return true
	case <-r.over:
		return false
	}
}

// ask has the loop call f, and waits until it has.
func ask[T any](ctx context.Context, r *runner, f func() (T, error)) (out T, err error) {
	done := make(chan struct{})
	if !r.post(func() { out, err = f(); close(done) }) {
		return out, errOver
	}
	select {
	case <-done:
		return out, err
	case <-r.over:
		return out, errOver
	}
}

var errOver = errors.New("the program has ended")

// rescan is how often the runner lock is looked at.
const rescan = 3 * time.Second

// loop owns everything until the end.
func (r *runner) loop(quit <-chan struct{}, entries <-chan watcher.Entry) error {
	if err := r.start(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	held := r.Now()
	var failed error
	for !r.ended {
		now := r.Now()
		if now.Sub(held) >= rescan {
			if held = now; r.Held != nil && !r.Held() && failed == nil {
				failed = ErrTakenOver
				r.stop("another runner has taken over", r.waits.Idle, nil)
			}
		}
		next := r.step(now)
		if at := held.Add(rescan); next.IsZero() || at.Before(next) {
			next = at
		}
		timer.Reset(max(next.Sub(r.Now()), 0))
		var output, exited <-chan struct{}
		if r.prog != nil {
			output, exited = r.prog.feed.more, r.prog.done
		}
		select {
		case <-output:
			r.output()
		case <-exited:
			r.gone()
		case e := <-entries:
			r.entry(e)
		case f := <-r.calls:
			f()
		case <-timer.C:
		case <-quit:
			quit = nil
			r.stop("interrupted", 2*time.Second, nil)
		}
	}
	return failed
}

// step does what time brings, and says when it wants to be called again (zero:
// when something has happened).
func (r *runner) step(now time.Time) (next time.Time) {
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if r.prog == nil {
		if !r.tries.at.IsZero() {
			if now.Before(r.tries.at) {
				sooner(r.tries.at)
			} else if err := r.start(); err != nil {
				r.failed(err)
			}
		}
		return next
	}
	sooner(r.look(now))
	if at := r.state.Next(); !at.IsZero() {
		if !now.Before(at) {
			r.apply(reducer.Input{Now: now})
			at = r.state.Next()
		}
		if at.After(now) {
			sooner(at)
		}
	}
	sooner(r.answering(now))
	sooner(r.takeBack(now))
	sooner(r.hand(now))
	return next
}

// entry takes in what the watcher tells.
func (r *runner) entry(e watcher.Entry) {
	now := r.Now()
	switch {
	case e.Message != nil:
		r.arrived(e.Message, now)
	case e.Event != nil:
		r.apply(reducer.Input{Now: now, Event: e.Event})
	case e.Err != nil:
		r.log.Error("watching", "err", e.Err)
	}
}

// arrived tells the reducer of a message.
func (r *runner) arrived(it *mailbox.Item, now time.Time) {
	m := it.Message
	if r.Inject == Off {
		return
	}
	mail := &reducer.Mail{ID: it.ID, Urgent: m.Urgent(), Expires: m.ExpiresAt, Due: m.DueAt, Read: it.State != mailbox.Unread}
	if mail.Read && mail.Due.IsZero() {
		return
	}
	if m.Supersedes != "" {
		if old, err := r.Box.Get(m.Supersedes); err == nil && old.From == m.From {
			r.apply(reducer.Input{Now: now, Arrived: &reducer.Mail{
				ID: old.ID, Urgent: old.Urgent(), Expires: old.ExpiresAt, Due: old.DueAt, Read: old.State != mailbox.Unread, Never: true,
			}})
		}
	}
	r.apply(reducer.Input{Now: now, Arrived: mail})
}

// apply folds an input and begins what it calls for.
func (r *runner) apply(in reducer.Input) {
	for _, e := range r.state.Apply(in) {
		switch e.Do {
		case reducer.DeliverNow:
			r.queue = append(r.queue, e.IDs...)
		case reducer.Interrupt:
			r.log.Info("interrupting for urgent mail", "ids", e.IDs)
			r.interrupt(true)
		case reducer.Remind, reducer.Escalate:
			if r.Overdue != nil {
				lead, ids := e.Do == reducer.Escalate, e.IDs
				r.wg.Go(func() {
					if err := r.Overdue(r.ctx, lead, ids); err != nil {
						r.log.Error("telling of an overdue answer", "err", err)
					}
				})
			}
		}
		// DeliverAtIdle and Announce wait, and so does Ask: what the screen asks is
		// put to the rules when it is seen.
	}
	if r.state.Turn().Word() != reducer.WordIdle {
		r.queue = nil // it will be named again
	}
}

// hooked reports whether the program's own hooks tell of its turns.
func (r *runner) hooked() bool { return r.state.Run != nil && r.state.Run.Begun }

// say appends an event of ours.
func (r *runner) say(e wire.Event) { r.ledger.say(e) }

// repaint is what a new file of the recording begins with.
func (r *runner) repaint() []byte {
	if r.prog == nil {
		return nil
	}
	return r.prog.screen.Repaint(0)
}

// joined is a command as one line.
func joined(argv []string) string {
	out := ""
	for i, a := range argv {
		if i > 0 {
			out += " "
		}
		out += a
	}
	return out
}
