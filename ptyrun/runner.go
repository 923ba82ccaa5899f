package ptyrun

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/cast"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/process"
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

	calls chan func()   // for the loop; of no place, so that none is left when it ends
	over  chan struct{} // closed when the loop has ended

	ledger *ledger
	clerk  *clerk // of claims
	teller *clerk // of questions: one is told before it is taken back
	record *cast.Writer
	state  reducer.State
	prog   *program // nil between two programs
	tries  restarts
	exit   Exit
	ended  bool

	followed bool      // by another program, or to be
	crowded  bool      // more mail is unread than the reducer holds
	looking  bool      // for answers that are overdue
	reminded time.Time // when overdue answers were looked for last

	queue     []wire.ID // named by the reducer to be handed over, in order
	typing    *typing   // under way
	prompted  bool      // the first prompt was typed, or given up
	question  *question // on the screen
	viewers   map[*viewer]bool
	lastHuman time.Time
	stopping  *stopping
	again     bool // a restart was asked for

	dir   *durable.Root // run/
	held  []byte        // a person's keys, while a text of ours is on its way in
	retry time.Time     // of a claim that failed

	said string // the answer that was told last

	last, below []byte // for terminals, when the agent has ended

	// The turn that only the screen tells of.
	turnOurs bool   // a text of ours began it, and its end has not been told
	turnText string // that
	turnFrom uint64 // how far the screen had scrolled
	cut      bool   // it was interrupted by us

	cols, rows int // as it was begun

	tried  map[wire.ID]int // how often a message was typed and perhaps not taken
	misses int             // how often typing failed since it last did not

	sitting *sitting // in the agent's sessions; nil: in none

	undone  *undone // a text whose turn was interrupted
	retell  string  // what of that goes in again, with the next text
	retries int     // how often that was typed and perhaps not taken
}

// Run runs the agent until its program has ended for good, or ctx has, or
// somebody stopped it. The caller holds the runner lock.
func Run(ctx context.Context, o Options) (Exit, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &runner{
		Options: o, ctx: context.WithoutCancel(ctx), waits: o.waits(), log: o.logger(), state: o.State,
		calls: make(chan func()), over: make(chan struct{}), viewers: map[*viewer]bool{},
		cols: o.Cols, rows: o.Rows, tried: map[wire.ID]int{},
	}
	r.tries = restarts{policy: o.Restart, first: r.waits.Backoff}
	var err error
	if r.dir, err = openRun(o.Box, true); err != nil {
		return r.exit, err
	}
	defer r.dir.Close()
	if err := process.Subreaper(); err != nil {
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
	// What a dead runner had in hand is in nobody's from now on, also if we are
	// long kept from typing it.
	if _, err := o.Box.Unfinished(ctx); err != nil {
		r.log.Error("looking for what was being typed", "err", err)
	}
	// Before the program runs: killed from here on, what it starts is found.
	if err := r.note(); err != nil {
		r.log.Error("writing run.json", "err", err)
	}
	r.ledger, r.clerk, r.teller = openLedger(o.Box, r.log), openClerk(), openClerk()
	r.openSitting(o.Sessions)
	serving, stop := context.WithCancel(r.ctx)
	r.wg.Go(func() { server.Serve(serving, handler{r}) })
	entries := make(chan watcher.Entry, 16)
	r.wg.Go(func() { r.hear(serving, inbox, entries) })

	if err = r.loop(ctx.Done(), entries); err == nil {
		r.endKept()
	}
	close(r.over)
	stop()
	err = errors.Join(err, inbox.Close(), server.Close(), r.record.Close())
	r.wg.Wait()
	r.clerk.close()
	r.teller.close()
	r.ledger.close()
	r.closeSitting(err)
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
	<-done
	return out, err
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
			r.recount()
			if now.Sub(r.reminded) >= remindEvery {
				r.overdue()
			}
		}
		next := r.step(now)
		if at := held.Add(rescan); next.IsZero() || at.Before(next) {
			next = at
		}
		var output, exited, stuck <-chan struct{}
		if p := r.prog; p != nil {
			output, exited = p.feed.more, p.done
			if at := p.changed.Add(pace); p.flood && now.Before(at) && len(r.viewers) == 0 {
				output, next = p.feed.much, earlier(next, at)
			}
			if r.stopping != nil {
				stuck = r.stopping.gone // in the kernel, where no signal reaches it
			}
		}
		timer.Reset(max(next.Sub(r.Now()), 0))
		select {
		case <-output:
			r.output()
		case <-exited:
			r.gone()
		case <-stuck:
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
	sooner(r.sit(now))
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
	if at := r.state.NextTick(); !at.IsZero() {
		if !now.Before(at) {
			r.apply(reducer.Input{Now: now})
			at = r.state.NextTick()
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
		r.heardOf(e.Event)
		if e.Event.Kind == wire.EventAgain { // the watcher tells of a message once
			if it, err := r.Box.Get(e.Event.MessageID()); err == nil {
				r.arrived(it, now)
			}
		}
	case e.Err != nil:
		r.log.Error("watching", "err", e.Err)
	}
}

// arrived tells the reducer of a message.
func (r *runner) arrived(it *mailbox.Item, now time.Time) {
	m := it.Message
	if !r.inputCame(it) || r.Inject == Off {
		return
	}
	mail := &reducer.Mail{ID: it.ID, Urgent: m.Urgent(), Expires: m.ExpiresAt, Due: m.DueAt, Read: it.State != mailbox.Unread, Held: heldUntil(it, now)}
	if mail.Read && mail.Due.IsZero() {
		return
	}
	r.crowded = r.crowded || !r.state.HasRoom()
	if m.Supersedes != "" {
		if old, err := r.Box.Get(m.Supersedes); err == nil && old.From == m.From {
			r.apply(reducer.Input{Now: now, Arrived: &reducer.Mail{
				ID: old.ID, Urgent: old.Urgent(), Expires: old.ExpiresAt, Due: old.DueAt, Read: old.State != mailbox.Unread, Never: true,
			}})
		}
	}
	r.apply(reducer.Input{Now: now, Arrived: mail})
}

// recount tells the reducer of the mail that it had no room for, now that it
// has some.
func (r *runner) recount() {
	if !r.crowded || !r.state.HasRoom() {
		return
	}
	r.crowded = false
	r.clerk.do(func() {
		ids, _, err := r.Box.UnreadIDs()
		for _, id := range ids {
			it, gone := r.Box.Get(id)
			if gone != nil {
				continue
			}
			if full, over := ask(r.ctx, r, func() (bool, error) { r.arrived(it, r.Now()); return r.crowded, nil }); full || over != nil {
				return
			}
		}
		if err != nil {
			r.log.Error("looking for unread mail", "err", err)
			r.post(func() { r.crowded = true })
		}
	})
}

// apply folds an input and begins what it calls for.
func (r *runner) apply(in reducer.Input) {
	for _, e := range r.state.Apply(in) {
		switch e.Do {
		case reducer.DeliverNow:
			r.enqueue(e.IDs)
		case reducer.Interrupt:
			r.log.Info("interrupting for urgent mail", "ids", e.IDs)
			r.interrupt(true)
		case reducer.Remind, reducer.Escalate:
			r.overdue()
		}
		// DeliverAtIdle and Announce wait, and so does Ask: what the screen asks is
		// put to the rules when it is seen.
	}
	if r.state.Turn().Word() != reducer.WordIdle {
		r.queue = nil // it will be named again
	}
}

// hooked reports whether the program's own hooks tell of its turns. (opencode's
// begin when its first session does, not with the program.)
func (r *runner) hooked() bool {
	return r.state.Run != nil && (r.state.Run.HasSessionStart || r.state.Turn().HasSessionStart)
}

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
