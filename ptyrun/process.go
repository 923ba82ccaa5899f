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

// scrollback is how many lines above the screen are remembered.
const scrollback = 500

// program is one start of the agent's program.
type program struct {
	child   *process.Child
	output  chan []byte // what it writes; nil: all has been read
	input   chan write
	screen  *screen.Screen
	driver  *driver.Driver
	started time.Time

	screenState
	reported       reducer.Activity // by the last event
	reportedDetail string
	keyVersion     uint64 // the screen's at the last key of a text of ours
	hasWorked      bool   // since it accepted a text of ours
	isReady        bool   // it has once been idle for FirstIdle
	capture        capture
}

// screenState is what a program's screen has shown.
type screenState struct {
	reading      driver.Reading // what the driver last read from the screen
	readingSince time.Time      // when its activity, detail or dialog last changed
	promptSince  time.Time      // zero: no prompt to type into
	readVersion  uint64         // the screen's version when it was read
	outputAt     time.Time      // when the program last wrote
	frameSince   time.Time      // when an open frame began; zero: none is open
	nextRead     time.Time      // zero: no output since the last read
	lastRead     time.Time
	freeAt       time.Time // when to return memory after a flood; zero: there was none
}

// asks reports whether the screen shows a dialog, perhaps one that only the title tells of.
func (p *program) asks() bool {
	return p.reading.Dialog != nil || p.reading.Activity == reducer.Confirming
}

// isSilent reports whether it has written nothing since the last key of a text of ours. It may not have read that yet.
func (p *program) isSilent() bool { return p.screen.Version() == p.keyVersion }

func (r *runner) startProgram() error {
	r.restarts.next = time.Time{}
	argv := slices.Concat(r.Front, driver.Unshared(r.Command))
	c, err := process.Start(process.Command{Argv: argv, Dir: r.Dir, Env: r.Env, Cols: r.Cols, Rows: r.Rows})
	if err != nil {
		return err
	}
	now := r.now()
	p := &program{
		child: c, output: make(chan []byte, maxPieces), input: make(chan write, maxWrites),
		screen: screen.New(r.Cols, r.Rows, scrollback), driver: r.Driver, started: now, reported: reducer.Starting,
	}
	p.reading = driver.Reading{Activity: reducer.Starting, NotPromptReason: "starting"}
	p.readingSince, p.outputAt = now, now
	r.prog, r.pid = p, c.PID()
	if r.finalScreen != nil {
		// The previous program left modes behind, perhaps the alternate screen.
		fresh := p.screen.Repaint(0)
		r.recording.Output(fresh)
		for v := range r.viewers {
			if v.Send(fresh); v.IsBehind() {
				v.Repaint(fresh)
			}
		}
	}
	r.changeClaim(func() error { return r.Hold.EndSessions(r.ctx) }) // of earlier programs
	r.wg.Go(func() { readOutput(c, p.output) })
	r.wg.Go(func() { writeInput(c, p.input) })
	r.appendEvent(wire.Event{Kind: "spawned"}.With("pid", c.PID()).With("started", now.UTC().Format(time.RFC3339Nano)).With("run", r.Run))
	r.writeRunInfo()
	return nil
}

// frameEnd ends a synchronized frame.
var frameEnd = []byte("\x1b[?2026l")

// takeOutput processes a piece of the program's output, which may be empty, and all that is queued behind it.
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
		n, isFrame := r.captureScrolled(rest), false
		if i := bytes.Index(rest[:n], frameEnd); i >= 0 && r.question != nil && r.question.pressed != nil {
			n, isFrame = i+len(frameEnd), true
		}
		p.screen.Write(rest[:n])
		rest = rest[n:]
		if isFrame {
			r.readFrame(r.now())
		}
	}
	if replies := p.screen.Replies(); len(replies) > 0 {
		p.sendKeys(replies)
	}
	for v := range r.viewers {
		v.Send(written)
	}
	p.scheduleRead(r.now())
}

// programEnded processes the rest of the output and the program's exit.
func (r *runner) programEnded() {
	p := r.prog
	if p.output != nil {
		for piece := range p.output {
			r.takeOutput(piece)
		}
	}
	now := r.now()
	r.setExit(p)
	if _, err := p.child.Stop(r.ctx, exitGrace); err != nil {
		r.Log.Error("ending the processes that the program started", "err", err)
	}
	if t := r.mail.typing; t.isSubmitted() && p.driver.HasAccepted(p.look(), t.draft) {
		r.typingDone(t) // perhaps the text ended the program: it must not be typed again
	}
	r.captureFinal(now)
	r.prog = nil
	close(p.input)
	r.abandonTyping("the program has ended")
	r.closeQuestion("")
	r.setFinalScreen(p.screen)
	r.recording.Exit(r.exit.Code)
	r.appendExited(p.child.PID())
	r.appendTurnCutOff(p)
	r.turn, r.leftover = turn{lastAnswer: r.turn.lastAnswer}, nil
	switch {
	case r.stopping != nil && r.stopping.isRestart:
		r.stopping, r.restarts.next = nil, now
	case r.stopping != nil:
		r.isOver = true
	default:
		r.planRestart(now, now.Sub(p.started))
	}
}

func (r *runner) setExit(p *program) {
	exit := process.Exit{Code: 137, Signal: "SIGKILL"} // of a program that is stuck in the kernel
	select {
	case <-p.child.Done():
		exit = p.child.Exit()
	default:
	}
	r.exit = Exit{Code: exit.Code, Signal: exit.Signal, Stopped: r.stopping != nil, Tail: p.screen.Tail(10)}
	if r.stopping != nil {
		r.exit.Ended = r.stopping.ended
	}
}

func (r *runner) appendExited(pid int) {
	why := ""
	if r.stopping != nil {
		why = r.stopping.reason
	}
	r.appendEvent(wire.Event{Kind: "exited"}.With("code", r.exit.Code).With("pid", pid), "signal", r.exit.Signal, "reason", why)
}

type restarts struct {
	next  time.Time     // zero: none is planned
	count int           // of all restarts
	pause time.Duration // before the last one
	exits []time.Time   // within loopWithin
}

const (
	maxPause   = 8 * time.Second
	loopWithin = time.Minute
	loopAfter  = 5 // exits within that
	stopGrace  = 2 * time.Second
	exitGrace  = 250 * time.Millisecond // for what a program that exited has left running
)

// plan plans the next start. isLoop: the program exited too often, whether it crashed or not.
func (s *restarts) plan(now time.Time, ran, firstPause time.Duration) (isLoop bool) {
	s.exits = append(s.exits, now)
	for now.Sub(s.exits[0]) > loopWithin {
		s.exits = s.exits[1:]
	}
	if ran > loopWithin {
		s.pause = 0
	}
	s.pause = min(max(2*s.pause, firstPause), maxPause)
	s.count++
	s.next = now.Add(s.pause)
	return len(s.exits) >= loopAfter
}

// planRestart plans a restart after a pause, if the options ask for one and the program does not exit too often.
func (r *runner) planRestart(now time.Time, ran time.Duration) {
	if r.Options.Restart != Always && (r.Options.Restart != OnCrash || r.exit.Code == 0) {
		r.isOver = true
		return
	}
	s := &r.restarts
	if s.plan(now, ran, r.timing.backoff) {
		r.exit.Loop, r.isOver = true, true
		detail := fmt.Sprintf("it exited %d times within a minute", loopAfter)
		if text := strings.TrimSpace(strings.Join(r.exit.Tail, "\n")); text != "" {
			detail += ": " + text[strings.LastIndexByte(text, '\n')+1:]
		}
		r.appendStateChange(reducer.Exited, reducer.Error, detail)
		return
	}
	r.appendEvent(wire.Event{Kind: "restarting"}.With("attempt", s.count).With("pause_ms", s.pause.Milliseconds()))
	r.notifyViewers(fmt.Sprintf("%s exited with %d; it restarts in %s", r.Box.Agent(), r.exit.Code, s.pause))
}

func (r *runner) stepRestart(now time.Time) {
	if r.restarts.next.IsZero() || r.mustWait(r.restarts.next, now) {
		return
	}
	if err := r.startProgram(); err != nil {
		r.Log.Error("restarting", "err", err)
		r.exit.Code, r.isOver = 127, true
		r.appendStateChange(reducer.Starting, reducer.Error, err.Error())
	}
	r.wakeAt(now)
}

// stopping is a stop that is under way.
type stopping struct {
	reason    string
	isRestart bool          // the program is started again afterwards
	ended     []string      // processes that the agent had started and that were ended
	done      chan struct{} // closed when all processes are gone
}

func (r *runner) stop(why string) {
	if r.stopping != nil {
		r.stopping.isRestart = false // a stop during a restart is a stop
		return
	}
	r.abandonTyping("it is being stopped")
	s := &stopping{reason: why, done: make(chan struct{})}
	r.stopping = s
	if r.prog == nil { // between two programs
		r.restarts.next, r.exit.Stopped, r.isOver = time.Time{}, true, true
		r.appendExited(r.pid)
		close(s.done)
		return
	}
	c := r.prog.child
	r.wg.Go(func() {
		others, _ := c.Stop(r.ctx, stopGrace) // programEnded tries again and logs the error
		s.ended = process.Names(others)
		close(s.done)
	})
}
