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

	nextStep time.Time     // when step wants to be called again
	calls    chan func()   // for the loop; unbuffered, so that none is left when it ends
	done     chan struct{} // closed when the loop has ended

	dir       *durable.Root // run/
	recording *record.Writer
	events    worker // appends events
	claims    worker // claims messages and says what became of them
	notifier  worker // tells people of questions, and takes that back

	state    reducer.State
	prog     *program // nil between two programs
	pid      int      // of the program, or of the last one
	restarts restarts
	stopping *stopping
	exit     Exit
	isOver   bool

	mail     mail
	turn     turn
	restored *restoredDraft // a text whose turn was interrupted
	question *Question      // on the screen
	binding  *binding       // to the agent's sessions; nil: to none

	viewers                map[*control.Viewer]control.Size // attached terminals; of no size: it is not told, or of no account
	lastKey                time.Time                        // of a person
	heldKeys               []byte                           // a person's, while a text of ours is on its way in
	finalScreen, finalText []byte                           // for terminals, when the agent has ended
	initialSize            control.Size

	hasMoreMail  bool          // more mail is unread than the reducer holds
	overdueCheck chan struct{} // answers that are overdue are to be looked for
}

// Run runs the agent until its program has ended for good, or ctx has, or somebody stopped it. The caller
// holds the runner lock.
//
// On Linux the process becomes, for its life, the parent of orphaned descendants. A child in a session of its own
// that was not started by package process may be reaped before its Wait.
func Run(ctx context.Context, o Options) (Exit, error) {
	if o.Box == nil || o.Hold == nil || o.Run == "" || len(o.Command) == 0 || o.Cols <= 0 || o.Rows <= 0 {
		return Exit{}, errors.New("run an agent: Box, Hold, Run, Command, Cols and Rows are needed")
	}
	r := &runner{
		Options: o, ctx: context.WithoutCancel(ctx), isAuto: o.Driver == nil, state: o.State,
		calls: make(chan func()), done: make(chan struct{}), overdueCheck: make(chan struct{}, 1),
		viewers: map[*control.Viewer]control.Size{}, mail: mail{tries: map[wire.ID]int{}},
	}
	r.setDefaults()
	r.initialSize = r.size()
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
		Failed: func(err error) { r.reportError("the recording has stopped: " + err.Error()) },
	})
	if err != nil {
		return r.exit, errors.Join(err, server.Close())
	}
	if err := undoLastTyping(ctx, o.Box); err != nil {
		r.Log.Error("what the last runner had typed when it was killed", "err", err)
	}
	inbox, err := watcher.Open(ctx, []*mailbox.Box{o.Box}, watcher.Options{
		Messages: true, Existing: true, Events: true, After: map[wire.Address]uint64{o.Box.Address(): o.State.Seq},
	})
	if err != nil {
		return r.exit, errors.Join(err, server.Close(), r.recording.Close())
	}
	r.writeRunInfo() // before the program runs: if the runner is killed from here on, what it starts is found
	r.binding = newBinding(o.Sessions, o.Box, r.Now())
	serving, stop := context.WithCancel(r.ctx)
	r.wg.Go(func() { server.Serve(serving, r) })
	r.wg.Go(func() {
		for {
			e, err := inbox.Next(serving)
			if err != nil || !r.post(func() { r.handleEntry(e) }) {
				return
			}
		}
	})
	r.wg.Go(r.remind)

	err = r.loop(ctx.Done())
	if t := r.mail.typing; t != nil {
		t.stop()
	}
	close(r.done)
	stop()
	err = errors.Join(err, inbox.Close(), server.Close())
	if err := r.recording.Close(); err != nil {
		r.Log.Error("ending the recording", "err", err)
	}
	r.claims.wait()
	r.notifier.wait()
	r.wg.Wait()
	r.events.wait()
	r.unbindSessions(err)
	return r.exit, err
}

func (r *runner) writeRunInfo() {
	info := runinfo.Info{Run: r.Run, Runner: os.Getpid(), PID: r.pid, Started: r.Now().UTC(), Command: r.Command, Inject: string(r.Inject)}
	if r.prog != nil {
		info.Driver = r.prog.driver.Name
	}
	if err := info.Write(r.dir); err != nil {
		r.Log.Error("writing run.json", "err", err)
	}
}

// post has the loop call f, unless it has ended.
func (r *runner) post(f func()) bool {
	select {
	case r.calls <- f:
		return true
	case <-r.done:
		return false
	}
}

var (
	errOver       = errors.New("the program has ended")
	errNotRunning = errors.New("its program does not run")
	errBeingTyped = errors.New("a message is being typed in; try again in a moment")
)

// ask has the loop call f, and waits until it has.
func inLoop[T any](r *runner, f func() (T, error)) (out T, err error) {
	done := make(chan struct{})
	if !r.post(func() { out, err = f(); close(done) }) {
		return out, errOver
	}
	<-done
	return out, err
}

// await waits for what holds in the runner's loop.
func (r *runner) poll(ctx context.Context, within time.Duration, holds func() bool) (bool, error) {
	for until := time.Now().Add(within); time.Now().Before(until); {
		done, err := inLoop(r, func() (bool, error) { return holds(), nil })
		if err != nil || done {
			return done, err
		}
		select {
		case <-time.After(readDelay):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return false, nil
}

// checkEvery is how often is looked whether the runner lock is still ours, and there is room for mail.
const checkEvery = 3 * time.Second

// loop owns everything until the end.
func (r *runner) loop(quit <-chan struct{}) (failed error) {
	if err := r.startProgram(); err != nil {
		r.appendStateChange(reducer.Starting, reducer.Error, err.Error())
		return err
	}
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for !r.isOver {
		now := r.Now()
		r.nextStep = now.Add(time.Hour)
		r.step(now)
		var output <-chan []byte
		var ended <-chan struct{}
		if p := r.prog; p != nil {
			ended = p.child.Done()
			if r.stopping != nil {
				ended = r.stopping.done // also if the program is stuck in the kernel, where no signal reaches it
			}
			output = p.output
		}
		select {
		case piece, isOpen := <-output:
			if !isOpen {
				r.prog.output = nil
			}
			r.takeOutput(piece)
		case <-ended:
			r.programEnded()
		case f := <-r.calls:
			f()
		case <-time.After(r.nextStep.Sub(r.Now())):
		case <-check.C:
			if !r.Hold.StillHeld() && failed == nil {
				failed = ErrTakenOver
				r.reportError(failed.Error())
				r.stop(failed.Error())
			}
			r.readMoreMail()
		case <-quit:
			quit = nil
			r.stop("interrupted")
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
	r.stepRestored(now)
	r.stepMail(now)
}

// wakeAt has step called again at some time; zero is never.
func (r *runner) wakeAt(at time.Time) {
	if !at.IsZero() && at.Before(r.nextStep) {
		r.nextStep = at
	}
}

// awaits reports whether a time is yet to come, and has step called again then.
func (r *runner) mustWait(at, now time.Time) bool {
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

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// say appends an event of ours, with those of the fields (name, value, name, …) that say something. What cannot be
// appended (a lock, a full disk) is tried again: a state that was not told is a lie that stays.
func (r *runner) appendEvent(e wire.Event, fields ...string) {
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			e = e.With(fields[i], fields[i+1])
		}
	}
	e.Source = "pty"
	r.events.do(func() {
		r.retry("appending events", func() error { return r.Box.Log().Append(context.Background(), e) })
	})
}

func (r *runner) appendStateChange(previous, now reducer.Activity, detail string) {
	r.appendEvent(wire.Event{Kind: "state_change"}.With("previous", string(previous)).With("new", string(now)), "detail", detail)
}

// tell shows the attached terminals a line of ours.
func (r *runner) notifyViewers(line string) {
	r.recording.Marker(line)
	for v := range r.viewers {
		v.Send([]byte("\r\n[atm: " + line + "]\r\n"))
	}
}

// sayError says what went wrong that no message is about: in the log, as an event and on attached terminals.
func (r *runner) reportError(what string) {
	r.Log.Error(what)
	r.appendEvent(wire.Event{Kind: "stream_error"}.With("error_summary", what))
	r.notifyViewers(what)
}

func (r *runner) recordInput(p []byte) {
	if r.RecordInput {
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
