package ptyrun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Capture says what becomes output of the agent's sessions. The recording has everything.
type Capture string

const (
	Pipe Capture = "pipe" // the agent's answers; the lines of a program that no driver knows
	PTY  Capture = "pty"  // the lines of its terminal
	Log  Capture = "log"  // nothing: the session's log has the answers of the turns
)

const (
	captureBudget = 64 << 10               // bytes of output a minute, and after a text was typed
	maxOutput     = 16 << 10               // bytes in one event
	captureRest   = 200 * time.Millisecond // without output, after which a visible line is final
	captureDelay  = time.Second            // how long a scrolled line may wait for more
	tailLines     = 10                     // emitted at the end of a flood
	tailBudget    = 4 << 10                // at least, for these
	recogniseTime = 2 * time.Second        // for the screen to show which program it is
)

// capture makes session output of lines: those that scrolled off the screen, and the visible ones when the program
// rests. Rows are counted as by screen.Scrolled.
type capture struct {
	echo         string   // a typed text, without blanks, that the terminal echoes; not emitted
	nextRow      uint64   // the first row that was not taken
	lastLines    []string // the visible lines when they were last taken, of a program that paints its screen
	pending      string   // lines to emit together
	pendingSince time.Time
	budget       int // bytes that may still be emitted
	budgetAt     time.Time
	omitted      uint64 // lines over budget
}

// capturesLines reports whether the program's lines are captured: with Pipe, not before its driver is known.
func (r *runner) capturesLines(now time.Time) bool {
	if p := r.prog; p != nil && r.binding.Capture == Pipe {
		mayBeOther := r.isAuto && !p.isReady && now.Sub(p.started) < recogniseTime
		return p.driver.Plain && !mayBeOther
	}
	return r.binding.Capture == PTY
}

// isCapturing reports whether lines are captured for a session now.
func (r *runner) isCapturing(now time.Time) bool {
	b := r.binding
	return b != nil && r.prog != nil && len(b.alive()) > 0 && r.capturesLines(now)
}

// captureAnswer emits the answer of a turn that has ended.
func (r *runner) captureAnswer(e *wire.Event) {
	if r.binding.Capture != Pipe || r.prog == nil || r.capturesLines(r.now()) {
		return
	}
	if answer := session.AnswerOf(e); answer != "" {
		r.emit(answer, e.Seq)
	} else if answer := r.response(); answer != r.turn.lastAnswer {
		r.turn.lastAnswer = answer
		r.emit(answer, 0)
	}
}

// emit appends output to the agent's events, for the only session that is alive or else for all. of is the seq of the
// event whose answer this repeats; 0: none.
func (r *runner) emit(text string, of uint64) {
	alive := r.binding.alive()
	if text == "" || len(alive) == 0 {
		return
	}
	var id wire.UUID
	if len(alive) == 1 {
		id = alive[0]
	}
	events, err := session.Events(id, wire.SessionEvent{Kind: "agent_output", Stream: "std_out", Content: text})
	if err != nil {
		r.Log.Error("appending output", "err", err)
	}
	for _, e := range events {
		if of > 0 {
			e = e.With(session.FieldAnswer, of)
		}
		r.appendEvent(e)
	}
}

// expectEcho keeps a typed text that the terminal will echo out of the output.
func (r *runner) expectEcho(text string, now time.Time) {
	if b := r.binding; b != nil {
		b.capture.echo, b.capture.budget, b.capture.budgetAt = driver.RemoveBlanks(text), captureBudget, now
	}
}

// captureSize returns how much of the output to draw before its lines are captured: while they are, no more bytes than
// the scrollback has lines.
func (r *runner) captureSize(p []byte) int {
	if r.isCapturing(r.now()) && r.binding.capture.budget > 0 {
		return min(len(p), scrollback)
	}
	return len(p)
}

func (r *runner) captureScrolled(now time.Time) {
	if !r.isCapturing(now) {
		return
	}
	c, s := &r.binding.capture, r.prog.screen
	if !s.Modes().Alt && (c.budget > 0 || now.Sub(c.budgetAt) >= time.Minute) { // do not draw lines that are not emitted
		r.addLines(c.takeLines(s, s.Scrolled()), now)
	}
	if c.pending != "" && now.Sub(c.pendingSince) >= captureDelay {
		r.emitPending()
	}
}

// captureResting captures the visible lines when the program rests: those above the cursor or, if the program paints
// its screen, all of them while it waits for input.
func (r *runner) captureResting(now time.Time) {
	if !r.isCapturing(now) {
		return
	}
	p := r.prog
	isResting, since := !p.screen.Modes().Alt, p.outputAt
	if !p.driver.Plain { // such a program may redraw its cursor ten times a second
		isResting, since = p.reading.Prompt || p.reading.Dialog != nil, later(p.promptSince, p.readingSince)
	}
	if !isResting || r.mustWait(later(since.Add(captureRest), p.nextRead), now) {
		return
	}
	end := lastWithText(p.screen) + 1
	if p.driver.Plain {
		_, end = p.screen.Cursor()
	}
	r.captureVisible(end, now)
}

func (r *runner) captureFinal(now time.Time) {
	if r.isCapturing(now) && !r.prog.screen.Modes().Alt {
		r.captureScrolled(now)
		r.captureVisible(lastWithText(r.prog.screen)+1, now)
	}
}

// captureVisible captures the lines above the visible row end and says how many were omitted. If the program paints its
// screen, lines that were visible last time are not captured again.
func (r *runner) captureVisible(end int, now time.Time) {
	c, s := &r.binding.capture, r.prog.screen
	to := s.Scrolled() + uint64(end)
	var lines []string
	if r.prog.driver.Plain {
		c.nextRow = min(c.nextRow, to) // the screen was cleared
		lines = c.takeLines(s, to)
	} else {
		before := c.lastLines
		c.nextRow, c.lastLines = s.Scrolled(), s.Lines()
		lines = slices.DeleteFunc(slices.Clone(c.lastLines[:end]), func(line string) bool { return line == "" || slices.Contains(before, line) })
	}
	if c.omitted > 0 {
		r.emitPending()
		r.emit(fmt.Sprintf("… %d lines omitted: asciinema play %s/run/screen.cast", c.omitted, r.Box.Path()), 0)
		c.omitted, c.budget = 0, max(c.budget, tailBudget)
		lines = lines[max(0, len(lines)-tailLines):]
	}
	r.addLines(lines, now)
	r.emitPending()
}

func (c *capture) skip(s *screen.Screen) {
	_, y := s.Cursor()
	c.nextRow, c.lastLines = s.Scrolled()+uint64(y), s.Lines()
}

// takeLines returns the lines from nextRow to end.
func (c *capture) takeLines(s *screen.Screen, end uint64) (lines []string) {
	top := s.Scrolled()
	if first := top - uint64(s.History()); c.nextRow < first {
		c.omitted += first - c.nextRow
		c.nextRow = first
	}
	for ; c.nextRow < end; c.nextRow++ {
		lines = append(lines, s.Line(int(int64(c.nextRow)-int64(top))))
	}
	return lines
}

func (r *runner) addLines(lines []string, now time.Time) {
	c := &r.binding.capture
	if now.Sub(c.budgetAt) >= time.Minute {
		c.budget, c.budgetAt = captureBudget, now
	}
	for _, line := range lines {
		if c.isEcho(line) {
			continue
		}
		if c.budget <= 0 {
			c.omitted++
			continue
		}
		if len(c.pending)+len(line) > maxOutput {
			r.emitPending()
		}
		if c.pending == "" {
			c.pendingSince = now
		}
		c.pending += line + "\n"
		c.budget -= len(line) + 1
	}
}

// isEcho reports whether a line echoes the typed text: only the first line with text can.
func (c *capture) isEcho(line string) bool {
	if line == "" || c.echo == "" {
		return false
	}
	echo := c.echo
	c.echo = ""
	return strings.HasSuffix(driver.RemoveBlanks(line), echo)
}

// emitPending emits the pending lines, without blank ones around them.
func (r *runner) emitPending() {
	c := &r.binding.capture
	r.emit(strings.Trim(c.pending, "\n"), 0)
	c.pending = ""
}

// lastWithText returns the last visible row with text; -1: there is none.
func lastWithText(s *screen.Screen) int {
	_, y := s.Size()
	for y--; y >= 0 && s.Line(y) == ""; y-- {
	}
	return y
}
