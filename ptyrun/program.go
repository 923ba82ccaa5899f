package ptyrun

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
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
	resumed resumption
	prompt  string // the first prompt, if it was not to be typed because a conversation goes on

	screenState
	reported       reducer.Activity // by the last event
	reportedDetail string
	clearedAt      time.Time // when its draft was
	keyVersion     uint64    // the screen's at the last key of a text of ours
	isReady        bool      // it has once been at its prompt for timing.firstIdle
	limit          limit     // zero: the screen shows none
	capture        capture

	declaredAt time.Time // when what it declares last changed
	hasExcess  bool      // it has declared more than is kept, which was reported
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
	freeMemory   *time.Timer // runs after a flood, whose memory the runtime would keep for minutes
}

// asks reports whether the screen shows a dialog, perhaps one that only the title tells of.
func (p *program) asks() bool {
	return p.reading.Dialog != nil || p.reading.Activity == reducer.Confirming
}

// isSilent reports whether it has written nothing since the last key of a text of ours. It may not have read that yet.
func (p *program) isSilent() bool { return p.screen.Version() == p.keyVersion }

func (r *runner) startProgram() error {
	r.restarts.next = time.Time{}
	command, resumed := r.resume()
	argv := slices.Concat(r.Front, driver.Unshared(command, r.isScript()))
	c, err := process.Start(process.Command{Argv: argv, Dir: r.Dir, Env: r.Env, Cols: r.Cols, Rows: r.Rows})
	if err != nil {
		return err
	}
	now := r.now()
	p := &program{
		child: c, output: make(chan []byte, maxPieces), input: make(chan write, maxWrites),
		screen: screen.New(r.Cols, r.Rows, scrollback), driver: r.Driver, started: now, reported: reducer.Starting, resumed: resumed,
	}
	if r.pid == 0 && resumed.id != "" { // an earlier run has sent the first prompt
		p.prompt, r.mail.prompt = r.mail.prompt, ""
	}
	r.notResumed, r.lastDriver = "", ""
	p.screen.IsLight = isLight(r.Env)
	p.reading = driver.Reading{Activity: reducer.Starting, NotPromptReason: control.GateStarting}
	p.readingSince, p.outputAt = now, now
	p.freeMemory = time.AfterFunc(time.Hour, debug.FreeOSMemory)
	p.freeMemory.Stop()
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
	r.changeClaim(func() error { return r.Hold.EndSessions(context.Background()) }) // of earlier programs
	r.wg.Go(func() { readOutput(c, p.output) })
	r.wg.Go(func() { writeInput(c, p.input) })
	spawned := wire.Event{Kind: "spawned"}.With("pid", c.PID()).With("started", now.UTC().Format(time.RFC3339Nano)).With("run", r.Run)
	r.appendEvent(spawned, "resumed", resumed.id, "not_resumed", resumed.fresh)
	r.writeRunInfo()
	return nil
}

// isLight reports whether an environment says, with COLORFGBG, that the person's terminal has a light background: its
// last number is one of the colours 7 and 9 to 15.
func isLight(env []string) (light bool) {
	for _, pair := range env { // the last one counts
		if value, ok := strings.CutPrefix(pair, "COLORFGBG="); ok {
			n, err := strconv.Atoi(value[strings.LastIndex(value, ";")+1:])
			light = err == nil && (n == 7 || n >= 9 && n <= 15)
		}
	}
	return light
}

// isScript reports whether the agent's command is a script.
func (r *runner) isScript() bool {
	path, err := process.LookUp(r.Command[0], r.Dir, r.Env)
	if err != nil {
		return false // starting it says why
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 2)
	n, _ := f.Read(start)
	return string(start[:n]) == "#!"
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
	r.sendOutput(written)
	p.scheduleRead(r.now())
}

// programEnded processes the program's exit, after its last output. What it has left running is ended beside the loop.
func (r *runner) programEnded() {
	p := r.prog
	now := r.now()
	r.setExit(p)
	if t := r.mail.typing; t.isSubmitted() && p.driver.HasAccepted(p.look(), t.draft) {
		r.typingDone(t) // perhaps the text ended the program: it must not be typed again
	}
	r.captureFinal(now)
	r.prog = nil
	close(p.input)
	r.abandonTyping("the program has ended")
	r.closeQuestion("")
	r.setFinalScreen(p.screen)
	status, _ := p.screen.Status()
	for v := range r.viewers {
		r.sendStatus(v, status, status.AtPrompt())
	}
	r.rewriting, r.removing = screen.StatusFilter{}, screen.StatusFilter{}
	r.recording.Exit(r.exit.Code)
	if r.stopping != nil { // which ends all processes
		r.processesEnded(p)
		return
	}
	r.isEnding = true
	r.wg.Go(func() {
		_, err := p.child.Stop(context.Background(), exitGrace)
		r.logSurvivors(err)
		r.post(func() { r.processesEnded(p) })
	})
}

// processesEnded goes on when a program and all that it started is gone.
func (r *runner) processesEnded(p *program) {
	now := r.now()
	r.isEnding = false
	r.exit.Stopped = r.stopping != nil
	if r.stopping != nil {
		r.exit.Ended = r.stopping.ended
	}
	r.appendExited(p.child.PID())
	r.appendTurnCutOff(p)
	r.turn, r.leftover = turn{lastAnswer: r.turn.lastAnswer}, nil
	switch {
	case r.stopping != nil && r.stopping.isRestart:
		r.stopping, r.restarts.next = nil, now
	case r.stopping != nil:
		r.isOver = true
	case r.resumeFailed(p):
		r.restarts.next = now
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
}

func (r *runner) logSurvivors(err error) {
	if err != nil {
		r.Log.Error("ending the processes that the program started", "err", err)
	}
}

func (r *runner) appendExited(pid int) {
	why := ""
	if r.stopping != nil {
		why = r.stopping.reason
	}
	r.appendEvent(wire.Event{Kind: "exited"}.With("code", r.exit.Code).With("pid", pid), "signal", r.exit.Signal, "reason", why)
}

// maxPieces is how many pieces of output may be queued for the loop, which draws them all before it does anything else.
// A piece is 4 KiB on Linux; the dearest sequences take seconds for 16 of them.
const maxPieces = 16

// readOutput sends what the program writes, and closes the channel at the end. While the channel is full the program
// blocks, as on a slow terminal.
func readOutput(c *process.Child, output chan<- []byte) {
	defer close(output)
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		output <- bytes.Clone(buf[:n])
	}
}

// write is something to type. done gets the number of bytes written.
type write struct {
	data []byte
	done func(n int, err error)
}

const (
	maxWrites    = 2048 // queued for a program that does not read
	writeTimeout = 2 * time.Second
)

// suspendKey is Ctrl-Z, also as a sequence of the kitty protocol or xterm's modifyOtherKeys.
var suspendKey = regexp.MustCompile(`\x1a|\x1b\[122[:\d]*;(?:5|69|133|197)(?::1)?u|\x1b\[27;5;122~`)

// wakeDelays are when a program is woken after Ctrl-Z: it may take a while to suspend itself, and waking a running
// program does nothing.
var wakeDelays = []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second}

// writeInput types into the program, in order, beside the loop, because a program that does not read would block it.
func writeInput(c *process.Child, writes <-chan write) {
	for w := range writes {
		n, err := c.Write(w.data, writeTimeout)
		if suspendKey.Match(w.data) {
			for _, after := range wakeDelays {
				time.AfterFunc(after, c.Wake)
			}
		}
		if w.done != nil {
			w.done(n, err)
		}
	}
}

// sendKeys types keys. Keys that the program does not read in time are lost, as on any terminal.
func (p *program) sendKeys(keys ...[]byte) {
	for _, k := range keys {
		p.send(write{data: bytes.Clone(k)})
	}
}

func (p *program) send(w write) {
	select {
	case p.input <- w:
	default:
		if w.done != nil {
			go w.done(0, os.ErrDeadlineExceeded)
		}
	}
}
