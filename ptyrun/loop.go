package ptyrun

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/ptyrun/record"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// runner is all state of a run. The loop alone touches it; others post.
type runner struct {
	Options
	ctx    context.Context
	isAuto bool // another driver may be chosen by what the screen shows
	wg     sync.WaitGroup

	wake  time.Time     // when step wants to be called again
	calls chan func()   // for the loop; unbuffered, so that none is left when it ends
	over  chan struct{} // closed when the loop has ended

	dir       *durable.Root // run/
	recording *record.Writer
	events    *eventWriter
	claims    worker // claims messages and says what became of them
	notifier  worker // tells people of questions and overdue answers, and takes that back

	state    reducer.State
	prog     *program // nil between two programs
	pid      int      // of the program, or of the last one
	restarts restarts
	stopping *stopping
	isRerun  bool // it is stopped to be started again
	exit     Exit
	ended    bool

	mail     mail
	turn     turn
	restored *restoredDraft // a text whose turn was interrupted
	resend   resend         // what of that goes in again
	question *question      // on the screen
	binding  *binding       // to the agent's sessions; nil: to none

	viewers     map[*viewer]bool
	lastKey     time.Time // of a person
	heldKeys    []byte    // a person's, while a text of ours is on its way in
	last, below []byte    // for terminals, when the agent has ended
	begunSize   control.Size

	mailLeft   bool      // more mail is unread than the reducer holds
	reminding  bool      // overdue answers are being looked for
	remindedAt time.Time // when they were looked for last
}

// Run runs the agent until its program has ended for good, or ctx has, or somebody stopped it. The caller
// holds the runner lock.
func Run(ctx context.Context, o Options) (Exit, error) {
	r := &runner{
		Options: o, ctx: context.WithoutCancel(ctx), isAuto: o.Driver == nil, state: o.State,
		calls: make(chan func()), over: make(chan struct{}), viewers: map[*viewer]bool{}, mail: mail{tries: map[wire.ID]int{}},
	}
	r.setDefaults()
	r.begunSize = r.size()
	team, name := o.Box.Store().Dir(), string(o.Box.Agent())+"/run"
	err := team.Mkdir(name)
	if err != nil {
		return r.exit, err
	}
	if r.dir, err = team.Sub(name); err != nil {
		return r.exit, err
	}
	defer r.dir.Close()
	if err := process.Subreaper(); err != nil {
		return r.exit, err
	}
	server, err := control.Listen(r.dir.Path())
	if err != nil {
		return r.exit, err
	}
	r.recording, err = record.Create(record.Options{
		Path: filepath.Join(r.dir.Path(), "screen.cast"), Cols: o.Cols, Rows: o.Rows,
		Command: strings.Join(o.Command, " "), Title: string(o.Box.Agent()), Repaint: r.repaint,
		Failed: func(err error) { go r.post(func() { r.recordingFailed(err) }) },
	})
	if err != nil {
		return r.exit, errors.Join(err, server.Close())
	}
	inbox, err := watcher.Open(ctx, []*mailbox.Box{o.Box}, watcher.Options{
		Messages: true, Existing: true, Events: true, After: map[wire.Address]uint64{o.Box.Address(): o.State.Seq},
	})
	if err != nil {
		return r.exit, errors.Join(err, server.Close(), r.recording.Close())
	}
	r.writeRunInfo() // before the program runs: if the runner is killed from here on, what it starts is found
	r.binding = newBinding(o.Sessions, o.Box, r.Now())
	r.events = newEventWriter(o.Box, r.Log)
	go r.events.run()
	serving, stop := context.WithCancel(r.ctx)
	r.wg.Go(func() { server.Serve(serving, r) })
	entries := make(chan watcher.Entry, 16)
	r.wg.Go(func() { r.watch(serving, inbox, entries) })

	err = r.loop(ctx.Done(), entries)
	close(r.over)
	stop()
	err = errors.Join(err, inbox.Close(), server.Close())
	if err := r.recording.Close(); err != nil {
		r.Log.Error("ending the recording", "err", err)
	}
	r.claims.wait()
	r.notifier.wait()
	r.wg.Wait()
	r.events.close()
	r.unbindSessions(err)
	return r.exit, err
}

func (r *runner) writeRunInfo() {
	info := runinfo.Info{Run: r.Run, Runner: os.Getpid(), PID: r.pid, Started: r.Now().UTC(), Command: r.Command, Inject: string(r.Inject)}
	if err := info.Write(r.dir); err != nil {
		r.Log.Error("writing run.json", "err", err)
	}
}

func (r *runner) watch(ctx context.Context, w *watcher.Watcher, to chan<- watcher.Entry) {
	for {
		e, err := w.Next(ctx) // whose end is the loop's
		if err != nil {
			return
		}
		select {
		case to <- e:
		case <-ctx.Done():
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

var (
	errOver       = errors.New("the program has ended")
	errNotRunning = errors.New("its program does not run")
	errBeingTyped = errors.New("a message is being typed in; try again in a moment")
)

// ask has the loop call f, and waits until it has.
func ask[T any](r *runner, f func() (T, error)) (out T, err error) {
	done := make(chan struct{})
	if !r.post(func() { out, err = f(); close(done) }) {
		return out, errOver
	}
	<-done
	return out, err
}

const (
	checkEvery  = 3 * time.Second       // whether the runner lock is still ours
	outputEvery = 20 * time.Millisecond // a program that floods its terminal is read
)

// remindEvery is how often overdue answers are looked for. Tests shorten it.
var remindEvery = time.Minute

// loop owns everything until the end.
func (r *runner) loop(quit <-chan struct{}, entries <-chan watcher.Entry) (failed error) {
	if err := r.start(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	checked := r.Now()
	for !r.ended {
		now := r.Now()
		if now.Sub(checked) >= checkEvery {
			checked = now
			if !r.Hold.StillHeld() && failed == nil {
				failed = ErrTakenOver
				r.stop(failed.Error(), r.Waits.Idle, nil)
			}
			r.readMailLeft()
			if now.Sub(r.remindedAt) >= remindEvery {
				r.remind()
			}
		}
		r.wake = checked.Add(checkEvery)
		r.step(now)
		var output <-chan []byte
		var exited, stopped <-chan struct{}
		if p := r.prog; p != nil {
			exited = p.child.Done()
			if !p.eof {
				output = p.output
			}
			// Each piece of a flood would cost a change of goroutines; of many at once the screen draws
			// only what can still be seen.
			if at := p.changed.Add(outputEvery); p.flooding && now.Before(at) && len(r.viewers) == 0 {
				output = nil
				r.wakeAt(at)
			}
			if r.stopping != nil {
				stopped = r.stopping.done // also if the program is stuck in the kernel, where no signal reaches it
			}
		}
		timer.Reset(max(r.wake.Sub(r.Now()), 0))
		select {
		case piece, ok := <-output:
			r.prog.unread, r.prog.eof = append(r.prog.unread, piece...), !ok
			r.takeOutput()
		case <-exited:
			r.programEnded()
		case <-stopped:
			r.programEnded()
		case e := <-entries:
			r.heard(e)
		case f := <-r.calls:
			f()
		case <-timer.C:
		case <-quit:
			quit = nil
			r.stop("interrupted", stopGrace, nil)
		}
	}
	return failed
}

func (r *runner) step(now time.Time) {
	r.stepSessions(now)
	if r.prog == nil {
		r.stepRestart(now)
		return
	}
	r.stepScreen(now)
	if at := r.state.NextTick(); !at.IsZero() && !now.Before(at) {
		r.apply(reducer.Input{Now: now})
	}
	if at := r.state.NextTick(); at.After(now) {
		r.wakeAt(at)
	}
	r.stepAnswer(now)
	r.stepRestored(now)
	r.stepKeys(now)
	r.stepMail(now)
}

// wakeAt has step called again at some time; zero is never.
func (r *runner) wakeAt(at time.Time) {
	if !at.IsZero() && at.Before(r.wake) {
		r.wake = at
	}
}

// awaits reports whether a time is yet to come, and has step called again then.
func (r *runner) awaits(at, now time.Time) bool {
	if now.Before(at) {
		r.wakeAt(at)
	}
	return now.Before(at)
}

// earlier is the first of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (r *runner) heard(e watcher.Entry) {
	now := r.Now()
	switch {
	case e.Message != nil:
		r.messageArrived(e.Message, now)
	case e.Event != nil:
		r.apply(reducer.Input{Now: now, Event: e.Event})
		r.noteSessionEvent(e.Event)
		if e.Event.Kind == wire.EventAgain { // the watcher tells of a message once
			r.messageChanged(e.Event.MessageID())
		}
	case e.Err != nil:
		r.Log.Error("watching", "err", e.Err)
	}
}

func (r *runner) messageChanged(id wire.ID) {
	if it, err := r.Box.Get(id); err == nil {
		r.messageArrived(it, r.Now())
	}
}

func (r *runner) messageArrived(it *mailbox.Item, now time.Time) {
	mail := mailOf(it)
	if !r.noteInput(it) || r.Inject == Off || mail.Read && mail.Due.IsZero() {
		return
	}
	if it.Lease != nil && it.Lease.Until.After(now) {
		mail.Held = it.Lease.Until
	}
	r.mailLeft = r.mailLeft || !r.state.HasRoom()
	if old, err := r.Box.Get(it.Supersedes); it.Supersedes != "" && err == nil && old.From == it.From {
		replaced := mailOf(old)
		replaced.Never = true
		r.apply(reducer.Input{Now: now, Arrived: replaced})
	}
	r.apply(reducer.Input{Now: now, Arrived: mail})
}

func mailOf(it *mailbox.Item) *reducer.Mail {
	return &reducer.Mail{ID: it.ID, Urgent: it.Urgent(), Expires: it.ExpiresAt, Due: it.DueAt, Read: it.State != mailbox.Unread}
}

// readMailLeft tells the reducer of the mail that it had no room for, now that it has some.
func (r *runner) readMailLeft() {
	if !r.mailLeft || !r.state.HasRoom() {
		return
	}
	ids, err := r.Box.UnreadIDs()
	r.mailLeft = err != nil
	for _, id := range ids {
		if r.messageChanged(id); r.mailLeft {
			return
		}
	}
}

// apply folds an input and begins what it calls for.
func (r *runner) apply(in reducer.Input) {
	for _, e := range r.state.Apply(in) {
		switch e.Do {
		case reducer.DeliverNow:
			r.mail.enqueue(e.IDs)
		case reducer.Interrupt:
			r.Log.Info("interrupting for urgent mail", "ids", e.IDs)
			r.wg.Go(func() {
				if r.awaitWork(r.ctx) == nil {
					r.post(func() { r.interrupt(true) })
				}
			})
		case reducer.Remind, reducer.Escalate:
			r.remind()
		}
		// DeliverAtIdle and Announce wait, and so does Ask: what the screen asks is put to the rules when
		// it is seen.
	}
	if r.state.Turn().Word() != reducer.WordIdle {
		r.mail.queue = nil // it will be named again
	}
}

// hasHooks reports whether the program's own hooks tell of its turns. (opencode's begin when its first
// session does, not with the program.)
func (r *runner) hasHooks() bool {
	return r.state.Run != nil && (r.state.Run.Sessions > 0 || r.state.Turn().HasSessionStart)
}

// say appends an event of ours, with those of the fields (name, value, name, …) that say something.
func (r *runner) say(e wire.Event, fields ...string) {
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			e = e.With(fields[i], fields[i+1])
		}
	}
	r.events.say(e)
}

func (r *runner) sayState(previous, now reducer.Activity, detail string) {
	r.say(wire.Event{Kind: "state_change"}.With("previous", string(previous)).With("new", string(now)), "detail", detail)
}

// tell shows the attached terminals a line of ours.
func (r *runner) tell(line string) {
	r.recording.Marker(line)
	for v := range r.viewers {
		v.to.Send([]byte("\r\n[atm: " + line + "]\r\n"))
	}
}

// remind sends what is due about answers that are overdue. It is called when the reducer names one, and
// every minute, since that knows nothing of what was read before the runner began.
func (r *runner) remind() {
	if r.Overdue == nil || r.reminding {
		return
	}
	r.reminding, r.remindedAt = true, r.Now()
	isIdle := false
	if p := r.prog; r.mail.typing == nil && p != nil && !p.driver.Plain { // a shell would run the reminder
		isIdle = r.gate(r.Now()) == control.GateOpen // else a minute later: what was just typed may not show yet
	}
	r.notify("telling of overdue answers", func() error {
		defer r.post(func() { r.reminding = false })
		return r.Overdue(r.ctx, isIdle)
	})
}

func (r *runner) notify(what string, tell func() error) {
	r.notifier.do(func() {
		if err := tell(); err != nil {
			r.Log.Error(what, "err", err)
		}
	})
}

// recordingFailed says, once each time, that nothing is recorded any more.
func (r *runner) recordingFailed(err error) {
	what := "the recording has stopped: " + err.Error()
	r.Log.Error(what)
	r.say(wire.Event{Kind: "stream_error"}.With("error_summary", what))
	r.tell(what)
}

func (r *runner) recordInput(p []byte) {
	if r.Input {
		r.recording.Input(p)
	}
}

// repaint is what a new file of the recording begins with.
func (r *runner) repaint() []byte {
	if r.prog == nil {
		return nil
	}
	return r.prog.screen.Repaint(0)
}
