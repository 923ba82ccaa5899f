// How it works: one loop owns the state of the run. It sleeps until a channel delivers something (what the agent tells, the end
// of its program, a message or event from the mailbox, a function posted by another goroutine) or a timer fires. Then it calls
// step, in which each topic checks the state, does what is due, and says when it wants to be called again. Whatever blocks on a
// terminal, lock, disk or client runs in a goroutine of its own that posts to the loop. An event is folded when it is appended,
// so that the loop never waits for the log to know what it has done itself.
//
// One turn: the queue names a message to deliver. When the gate opens, the message is claimed and given by the best way, and the
// table of package delivery says what follows from what happens to it then (all in internal/inbox). A terminal types the text,
// submits it and sees it go, and then reports the start of the turn; its screen is read as it is drawn, and what has been stable
// is reported; a dialog becomes a question until it is gone; at the end of the turn it reports that (internal/terminal): what was
// said no screen tells. A speaker tells all of this itself.
//
// Where to look. Here is what holds a run together:
//
//	mailbox              the mailbox of the agent, and its runner lock
//	start                the handle; how a run begins and ends
//	runner               the runner's state and its loop
//	program, restart     one start of the program; the next start, and the end
//	resume               the conversation that a program continues
//	interrupt            how a turn is cut short
//	follower             the run as its follower sees it
//	server               requests through the socket
//
// Its parts are packages, of which each has its own state and knows only those above it:
//
//	internal/loop        how other goroutines work with the loop
//	internal/run         what all share: the loop, the log and what it says, what an agent and a text are
//	internal/inbox       its mail and prompts: which is next, whether it may be given, and what becomes of it
//	internal/terminal    an agent on a PTY: what the screen shows, typing
//	internal/viewers     people's terminals, and the transcript of an agent without one
//	internal/record      the recording of a terminal
//	internal/acp         the Agent Client Protocol with a program
//	internal/speaker     an agent that speaks that

package ptyrun

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/questions"
	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/ptyrun/internal/inbox"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/record"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/ptyrun/internal/terminal"
	"github.com/agentteammail/atm/ptyrun/internal/viewers"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// runner is the state of a run. Only the loop touches it; other goroutines post.
type runner struct {
	Options
	*run.Run
	Hold *claim.Runner

	dir       *durable.Root // run/
	notes     loop.Worker   // writes run.json
	unwritten int           // how often it is still to be written
	logged    func()        // is called when the log has more events
	notifier  loop.Worker   // sends questions to people and withdraws them, and sends reminders

	prog     *program // nil between two programs
	isEnding bool     // what the last program started is being ended; prog is nil
	pid      int      // of the current or the last program
	restarts run.Restarts
	stopping *stopping
	exit     Exit

	lastDriver string // that of the last program under this name; "": not known
	notResumed string // why the next program begins a new conversation

	isOver bool
	failed error // why the run cannot go on

	told     *wire.Event // what a hook says of the question on the screen; nil: nothing yet
	inbox    *inbox.Inbox
	follower runhost.Follower // of Options.Follow
	viewers  *viewers.Viewers
}

func newRunner(ctx context.Context, o Options, m *Mail) *runner {
	r := &runner{Options: o, Hold: m.hold}
	r.setDefaults()
	r.Run = &run.Run{Loop: loop.New(ctx, r.Options.Log, r.Options.now), ID: r.Options.Run, Box: m.box(), Timing: r.timing, State: m.state}
	r.viewers = viewers.New(r.Run, r.hasTerminal(), control.Size{Cols: r.Cols, Rows: r.Rows}, func() (int, string) { return r.exit.Code, r.exit.Signal })
	r.Notify = r.viewers.Notify
	r.Questions = questions.Questions{Owner: asker{r}, Agent: r.Box.Agent(), Patience: r.Timing.PersonQuiet + pressTimeout}
	if o.Follow != nil {
		r.follower = o.Follow(followed{r})
	}
	mail := inbox.Options{
		Inject: inbox.Inject(r.Inject), Prompt: r.Prompt, Carrier: r.Carrier, HasTerminal: r.hasTerminal(), IsPlain: r.Driver.Plain, GoesOn: r.GoesOn,
		Work: r.Work, Withhold: r.follower.Withhold, Body: r.follower.Body, Dropped: r.releaseKeys, Gone: r.lost,
		HasAnswered: r.HasAnswered,
		Interrupt:   func() error { _, err := r.interruptTurn(byMail); return err },
	}
	if r.Remind != nil {
		mail.Remind = func(isIdle bool) {
			r.notify("sending reminders of overdue answers", func() error { return r.Remind(context.Background(), isIdle) })
		}
	}
	r.inbox = inbox.New(r.Run, r.Hold, mail)
	r.Fold = r.inbox.Fold
	return r
}

// openDir opens the run directory, and makes it if it is missing.
func (r *runner) openDir() error {
	team, name := r.Box.Store().Dir(), string(r.Box.Agent())+"/run"
	err := team.Mkdir(name)
	if err == nil {
		r.dir, err = team.Sub(name)
	}
	return err
}

func (r *runner) startRecording() (err error) {
	r.Recording, err = record.Create(record.Options{
		Path: filepath.Join(r.dir.Path(), "screen.cast"), Cols: r.Cols, Rows: r.Rows,
		Command: strings.Join(r.Command, " "), Title: string(r.Box.Agent()), Repaint: func() []byte { return r.viewers.Drawn(0) },
		Failed: func(err error) { r.Post(func() { r.ReportError("the recording has stopped: " + err.Error()) }) },
	})
	return err
}

func (r *runner) closeRecording() error {
	err := r.Recording.Close()
	if err != nil {
		r.Log.Error("ending the recording", "err", err)
	}
	return err
}

// startHelpers starts the goroutines that bring clients, mail and events to the loop, and the follower.
func (r *runner) startHelpers(server *control.Server, found *watcher.Watcher) {
	r.Go(func() { server.Serve(r.Context(), r) })
	r.Go(func() {
		for {
			e, err := found.Next(r.Context())
			if err != nil {
				return
			}
			if tell := r.inbox.ChangedBy(e); !r.Post(func() { r.handleEntry(e, tell) }) {
				return
			}
		}
	})
	if r.follower.Run != nil {
		r.Go(func() { r.follower.Run(r.Context()) })
	}
	r.Go(r.inbox.Watch)
}

// handleEntry acts on what the watcher has found. tell is what tells of the message that it is about; nil: there is none.
func (r *runner) handleEntry(e watcher.Entry, tell func()) {
	switch {
	case e.Event != nil:
		if r.IsOwn(e.Event) {
			r.State.Seq = max(r.State.Seq, e.Event.Seq)
		} else {
			r.Fold(e.Event, r.Now())
			if e.Event.Kind == wire.ConfirmRequired && e.Event.Source == wire.SourceHook {
				r.told = e.Event
			}
		}
		if r.logged != nil {
			r.logged()
		}
		if r.follower.HandleEvent != nil {
			r.follower.HandleEvent(e.Event)
		}
		r.inbox.HandleEvent(e.Event)
	case e.Err != nil:
		r.Log.Error("watching", "err", e.Err)
	}
	if tell != nil {
		tell()
	}
}

// lost ends the run, whose mailbox is gone.
func (r *runner) lost(why error) {
	if r.failed == nil {
		r.failed = why
		r.ReportError(why.Error())
		r.stop(why.Error())
	}
}

func (r *runner) detachFollower(failed error) {
	if r.follower.Detach != nil && r.Hold.StillHeld() {
		r.follower.Detach(runhost.Ended{Code: r.exit.Code, Stopped: r.exit.Stopped, Loop: r.exit.Loop, Err: failed})
	}
}

func (r *runner) runInfo() runinfo.Info {
	info := runinfo.Info{
		Run: r.ID, Version: r.Version, Runner: os.Getpid(), PID: r.pid, Started: r.Now().UTC(), Cwd: r.Dir,
		Inject: string(r.inbox.Inject()), Serves: r.Serves,
	}
	self, _ := process.Find(info.Runner)
	info.Start = self.Start
	if r.prog != nil { // hints repeat a command that could be started
		info.Command, info.Driver = r.Command, r.prog.State().Driver
	}
	return info
}

func (r *runner) writeRunInfo() {
	info := r.runInfo()
	r.unwritten++
	r.notes.Do(func() {
		if err := info.Write(r.dir); err != nil {
			r.Log.Error("writing run.json", "err", err)
		}
		r.Post(func() { r.unwritten-- })
	})
}

func (r *runner) loop(quit <-chan struct{}) {
	for !r.isOver {
		now := r.Now()
		r.Begin(now)
		r.step(now)
		var woken, ended <-chan struct{}
		if p := r.prog; p != nil {
			woken = p.Woken()
			isStuck := r.stopping != nil && isClosed(r.stopping.done) && !isClosed(p.Done()) // in the kernel: it cannot be killed
			switch {
			case isStuck:
				woken, ended = nil, r.stopping.done
			case woken != nil: // what it tells comes first
			case r.stopping != nil:
				ended = r.stopping.done
			default:
				ended = p.Done()
			}
		}
		select {
		case <-woken: // step takes it in
		case <-ended:
			r.programEnded()
		case f := <-r.Calls():
			f()
		case <-r.Timer():
		case <-quit:
			quit = nil
			r.stop("interrupted")
		}
	}
}

func (r *runner) step(now time.Time) {
	if r.prog == nil {
		r.stepRestart(now)
	} else {
		r.prog.Step(now)
	}
	r.inbox.Step(now)
}

// releaseKeys types the keys of people that were held while a text was typed.
func (r *runner) releaseKeys() {
	if t := terminal.Of(r.Run); t != nil {
		t.ReleaseKeys()
	}
}

// notify sends or withdraws a notice, in order.
func (r *runner) notify(what string, tell func() error) {
	r.notifier.Do(func() {
		if err := tell(); err != nil {
			r.Log.Error(what, "err", err)
		}
	})
}
