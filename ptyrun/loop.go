package ptyrun

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/queue"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/record"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// runner is the state of a run. Only the loop touches it; other goroutines post.
type runner struct {
	Options
	Box      *maildir.Box
	Hold     *claim.Runner
	ctx      context.Context // ends with the loop
	isAuto   bool            // the screen may choose another driver
	isScript bool            // the command is a script
	wg       sync.WaitGroup

	nextStep time.Time   // when step wants to be called again
	calls    chan func() // for the loop to call; unbuffered, so that none is left over when it ends

	dir       *durable.Root // run/
	serverDir string        // for the socket of the program's own server; "": it has none
	recording *record.Writer
	events    worker      // appends events
	logFails  atomic.Bool // the last one was not appended
	notes     worker      // writes run.json
	unwritten int         // how often it is still to be written
	logged    func()      // is called when the log has more events
	claims    worker      // claims messages and settles the claims
	notifier  worker      // sends questions to people and withdraws them, and sends reminders

	state    reducer.State
	prog     *program // nil between two programs
	isEnding bool     // what the last program started is being ended; prog is nil
	pid      int      // of the current or the last program
	restarts restarts
	stopping *stopping
	exit     Exit

	lastDriver string // that of the last program under this name; "": not known
	notResumed string // why the next program begins a new conversation

	isOver bool
	failed error // why the run cannot go on

	mail       mail
	beside     beside
	root       rootState
	lastAnswer string     // the last one that a terminal reported, by whichever program
	question   *question  // that the agent asks
	follower   Follower   // of Options.Follow
	unlogged   []unlogged // events that did not come back from the log yet

	attached

	queue         queue.Queue // the mail that it was told of
	hasMoreMail   bool        // there is unread mail that the queue had no room for
	isReadingMail bool        // that mail is being read
}

func newRunner(ctx context.Context, o Options, m *Mail) *runner {
	r := &runner{
		Options: o, Box: m.box, Hold: m.hold, ctx: ctx, isAuto: o.Driver == nil, state: m.state,
		calls:    make(chan func()),
		attached: attached{viewers: map[*control.Viewer]control.Size{}, withStatus: map[*control.Viewer]bool{}},
		mail:     mail{tries: map[wire.ID]int{}},
	}
	r.beside = beside{r: r, atPrompt: map[wire.ID]bool{}}
	r.setDefaults()
	r.isScript = isScript(r.Options)
	if r.Prompt != "" && r.Inject != Off {
		r.mail.prompts = []*prompt{{text: r.Prompt}}
	}
	r.initialSize, r.mail.remindAt = r.size(), r.now().Add(checkEvery)
	if r.follower = (noFollower{}); o.Follow != nil {
		r.follower = o.Follow(Followed{r.Box.Path(), r.Log, r})
	}
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
	r.recording, err = record.Create(record.Options{
		Path: filepath.Join(r.dir.Path(), "screen.cast"), Cols: r.Cols, Rows: r.Rows,
		Command: strings.Join(r.Command, " "), Title: string(r.Box.Agent()), Repaint: func() []byte { return r.drawn(0) },
		Failed: func(err error) { r.post(func() { r.reportError("the recording has stopped: " + err.Error()) }) },
	})
	return err
}

func (r *runner) closeRecording() error {
	err := r.recording.Close()
	if err != nil {
		r.Log.Error("ending the recording", "err", err)
	}
	return err
}

// startHelpers starts the goroutines that bring clients, mail and events to the loop, and the follower.
func (r *runner) startHelpers(server *control.Server, inbox *watcher.Watcher) {
	r.wg.Go(func() { server.Serve(r.ctx, r) })
	r.wg.Go(func() {
		for {
			e, err := inbox.Next(r.ctx)
			if err != nil {
				return
			}
			if changed := r.changedBy(e); !r.post(func() { r.handleEntry(e, changed) }) {
				return
			}
		}
	})
	r.wg.Go(func() { r.follower.Run(r.ctx) })
	r.wg.Go(r.watchRoot)
}

func (r *runner) detachFollower(failed error) {
	if r.Hold.StillHeld() {
		r.follower.Detach(r.exit, failed)
	}
}

func (r *runner) runInfo() runinfo.Info {
	info := runinfo.Info{
		Run: r.Run, Version: r.Version, Runner: os.Getpid(), PID: r.pid, Started: r.now().UTC(), Cwd: r.Dir,
		Inject: string(r.inject()), ServerDir: r.serverDir,
	}
	if r.prog != nil { // hints repeat a command that could be started
		info.Command, info.Driver = r.Command, r.prog.state().driver
	}
	return info
}

func (r *runner) writeRunInfo() {
	info := r.runInfo()
	r.unwritten++
	r.notes.do(func() {
		if err := info.Write(r.dir); err != nil {
			r.Log.Error("writing run.json", "err", err)
		}
		r.post(func() { r.unwritten-- })
	})
}

func (r *runner) loop(quit <-chan struct{}) {
	for !r.isOver {
		now := r.now()
		r.nextStep = now.Add(time.Hour)
		r.step(now)
		var woken, ended <-chan struct{}
		if p := r.prog; p != nil {
			woken = p.woken()
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
		case f := <-r.calls:
			f()
		case <-time.After(r.nextStep.Sub(r.now())):
		case <-quit:
			quit = nil
			r.stop("interrupted")
		}
	}
}

func (r *runner) step(now time.Time) {
	if r.prog == nil {
		r.stepRestart(now)
		r.stepMail(now) // a claim may have come
		r.stepReminders(now)
		return
	}
	r.prog.step(now)
	r.stepQueue(now) // an answer may be due, or a lease have ended
	r.stepLimit(now)
	r.stepMail(now)
	r.stepReminders(now)
}

// wakeAt makes the loop call step at that time at the latest. Zero is never.
func (r *runner) wakeAt(at time.Time) {
	if !at.IsZero() && at.Before(r.nextStep) {
		r.nextStep = at
	}
}

// mustWait reports whether a time is in the future. If it is, step is called again then.
func (r *runner) mustWait(at, now time.Time) bool {
	if now.Before(at) {
		r.wakeAt(at)
	}
	return now.Before(at)
}

// earlier returns the earlier of two times. Zero is never.
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

// notifyViewers shows a line of atm's own on the attached terminals.
func (r *runner) notifyViewers(line string) {
	r.recording.Marker(line)
	for v := range r.viewers {
		v.Send([]byte("\r\n[atm: " + letter.Escape(line) + "]\r\n"))
	}
}

// reportError reports an error that concerns no message: in the log, as an event and on the attached terminals.
func (r *runner) reportError(what string) {
	r.Log.Error(what)
	r.append(wire.Event{Kind: "stream_error"}.With("error_summary", what))
	r.notifyViewers(what)
}
