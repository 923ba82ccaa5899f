package ptyrun

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// scrollback is how many lines above the screen are kept.
const scrollback = 500

// program is one start of the agent's program, and what was seen of it.
type program struct {
	child   *process.Child
	output  chan []byte // what it writes; nil: all of it was read
	input   chan write  // to be typed
	screen  *screen.Screen
	driver  *driver.Driver
	started time.Time

	reading  driver.Reading // of the screen
	since    time.Time      // when activity, detail and dialog became what they are
	promptAt time.Time      // since when it could be typed into; zero: it cannot
	version  uint64         // of the screen that was read
	changed  time.Time      // when the screen was written to last
	frame    time.Time      // since when a frame is being drawn; zero: none is
	readAt   time.Time      // when to read the screen again; zero: nothing was written
	judged   time.Time      // when it was read last
	freeAt   time.Time      // when to give back memory; zero: there was no flood
	told     reducer.Activity
	detail   string // told
	worked   bool   // it was at work since a text of ours was taken
	isReady  bool   // it was idle for long enough once
}

func (r *runner) start() error {
	r.restarts.at = time.Time{}
	argv := slices.Concat(r.Front, r.Command)
	c, err := process.Start(process.Command{Argv: argv, Dir: r.Dir, Env: r.Env, Cols: r.Cols, Rows: r.Rows})
	if err != nil {
		return err
	}
	now := r.Now()
	p := &program{
		child: c, output: make(chan []byte, maxUnread), input: make(chan write, maxWrites),
		screen: screen.New(r.Cols, r.Rows, scrollback), driver: r.Driver, started: now, since: now, changed: now,
		told: reducer.Starting, reading: driver.Reading{Activity: reducer.Starting, Why: "starting"},
	}
	r.prog, r.pid = p, c.PID()
	if b := r.binding; b != nil {
		b.capture.row, b.capture.shown = 0, nil
	}
	if r.last != nil {
		// The one before left modes behind, its alternate screen for one.
		fresh := p.screen.Repaint(0)
		r.recording.Output(fresh)
		for v := range r.viewers {
			if v.Send(fresh) != nil { // it was behind, and may have caught up while there was nothing to show
				v.Repaint(fresh)
			}
		}
	}
	r.wg.Go(func() { readOutput(c, p.output) })
	r.wg.Go(func() { writeInput(c, p.input) })
	r.say(wire.Event{Kind: "spawned"}.With("pid", c.PID()).With("started", now.UTC().Format(time.RFC3339Nano)).With("run", r.Run))
	r.writeRunInfo()
	return nil
}

// frameEnd is what a program writes behind a whole frame, if it tells frames apart.
var frameEnd = []byte("\x1b[?2026l")

// takeOutput takes in a piece of what the program has written, if there is one, and all that waits behind it.
func (r *runner) takeOutput(written []byte) {
	p := r.prog
	for range len(p.output) {
		written = append(written, <-p.output...)
	}
	if len(written) == 0 {
		return
	}
	r.recording.Output(written)
	for rest := written; len(rest) > 0; {
		n, isFrame := r.captureSize(rest), false
		if i := bytes.Index(rest[:n], frameEnd); i >= 0 && r.question != nil && r.question.pressed != nil {
			n, isFrame = i+len(frameEnd), true
		}
		p.screen.Write(rest[:n])
		r.captureScrolled(r.Now())
		rest = rest[n:]
		if isFrame {
			r.noteFrame(r.Now())
		}
	}
	if replies := p.screen.Replies(); len(replies) > 0 {
		p.put(replies)
	}
	for v := range r.viewers {
		v.Send(written)
	}
	p.outputCame(r.Now())
}

// programEnded takes in that the program has exited: first what it wrote last.
func (r *runner) programEnded() {
	p := r.prog
	if p.output != nil {
		for piece := range p.output {
			r.takeOutput(piece)
		}
	}
	now := r.Now()
	r.noteExit(p)
	if err := p.child.Close(); err != nil {
		r.Log.Error("ending what the program started", "err", err)
	}
	if t := r.mail.typing; t.isSubmitted() && p.driver.Accepted(p.look(), t.draft) {
		t.stop()
		r.typed(t) // what made it end, perhaps: that must not go in again and again
	}
	r.captureLast(now)
	r.prog = nil
	close(p.input)
	r.abandonTyping("the program has ended")
	r.closeQuestion("")
	r.keepLastScreen(p.screen)
	r.recording.Exit(r.exit.Code)
	r.sayExited(p.child.PID())
	r.sayTurnCutOff(p)
	r.turn, r.restored = turn{answer: r.turn.answer}, nil
	switch {
	case r.stopping != nil && r.stopping.isRestart:
		r.stopping, r.restarts.at = nil, now
	case r.stopping != nil:
		r.ended = true
	default:
		r.planRestart(now, now.Sub(p.started))
	}
}

func (r *runner) noteExit(p *program) {
	exit := process.Exit{Code: 137, Signal: "SIGKILL"} // of one that is stuck in the kernel
	select {
	case <-p.child.Done():
		exit = p.child.Exit()
	default:
	}
	r.exit = Exit{Code: exit.Code, Signal: exit.Signal, Asked: r.stopping != nil, Tail: p.screen.Tail(10)}
	if r.stopping != nil {
		r.exit.Ended = r.stopping.ended
	}
}

func (r *runner) sayExited(pid int) {
	why := ""
	if r.stopping != nil {
		why = r.stopping.why
	}
	r.say(wire.Event{Kind: "exited"}.With("code", r.exit.Code).With("pid", pid), "signal", r.exit.Signal, "reason", why)
}

type restarts struct {
	at      time.Time     // of the next start; zero: none is planned
	count   int           // of all restarts
	pause   time.Duration // the last one; zero after a program that ran for a while
	crashes []time.Time   // the newest
}

const (
	maxPause   = 8 * time.Second
	loopWithin = time.Minute
	loopAfter  = 5 // crashes within that
	stopGrace  = 2 * time.Second
)

// plan takes in an end, and plans a start unless that makes a loop.
func (s *restarts) plan(now time.Time, ran, firstPause time.Duration) (isLoop bool) {
	// An end at once is as bad as a crash: it would be started for ever.
	s.crashes = append(s.crashes, now)
	for now.Sub(s.crashes[0]) > loopWithin {
		s.crashes = s.crashes[1:]
	}
	if ran > loopWithin {
		s.pause = 0
	}
	s.pause = min(max(2*s.pause, firstPause), maxPause)
	s.count++
	s.at = now.Add(s.pause)
	return len(s.crashes) >= loopAfter
}

// planRestart starts the program again after a pause, if that is wanted, unless it ends too often.
func (r *runner) planRestart(now time.Time, ran time.Duration) {
	if r.Options.Restart != Always && (r.Options.Restart != OnCrash || r.exit.Code == 0) {
		r.ended = true
		return
	}
	s := &r.restarts
	if s.plan(now, ran, r.Waits.Backoff) {
		r.exit.Loop, r.ended = true, true
		r.sayState(reducer.Exited, reducer.Error, r.exit.loopDetail())
		return
	}
	r.say(wire.Event{Kind: "restarting"}.With("attempt", s.count).With("pause_ms", s.pause.Milliseconds()))
	r.tell(fmt.Sprintf("%s ended with %d; it is started again in %s", r.Box.Agent(), r.exit.Code, s.pause))
}

func (r *runner) stepRestart(now time.Time) {
	if r.restarts.at.IsZero() || r.awaits(r.restarts.at, now) {
		return
	}
	if err := r.start(); err != nil {
		r.Log.Error("starting again", "err", err)
		r.exit.Code, r.ended = 127, true
		r.sayState(reducer.Starting, reducer.Error, err.Error())
	}
	r.wakeAt(now)
}

func (e *Exit) loopDetail() string {
	detail := fmt.Sprintf("it ended %d times within a minute", loopAfter)
	if said := strings.TrimSpace(strings.Join(e.Tail, "\n")); said != "" {
		detail += ": " + said[strings.LastIndexByte(said, '\n')+1:]
	}
	return detail
}

type stopping struct {
	why       string
	isRestart bool          // the program is started again then
	ended     []string      // what the agent had started, and had to be ended
	done      chan struct{} // closed when everything has
}

func (r *runner) stop(why string) {
	if r.stopping != nil {
		r.stopping.isRestart = false // a stop during a restart is a stop
		return
	}
	r.abandonTyping("it is being stopped")
	s := &stopping{why: why, done: make(chan struct{})}
	r.stopping = s
	if r.prog == nil { // between two programs: it is off, and not about to start any more
		r.restarts.at, r.exit.Asked, r.ended = time.Time{}, true, true
		r.sayExited(r.pid)
		close(s.done)
		return
	}
	c := r.prog.child
	r.wg.Go(func() {
		others, _ := c.Stop(r.ctx, stopGrace) // Close tries again, and says what is left
		s.ended = process.Names(others)
		close(s.done)
	})
}
