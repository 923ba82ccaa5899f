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

// Capture says what becomes output of the agent's sessions. All else is in the recording.
type Capture string

const (
	Pipe Capture = "pipe" // what the agent says: its answers, or the lines of a program that is not known
	PTY  Capture = "pty"  // the lines of its terminal
	Log  Capture = "log"  // nothing: the answers are in the log of the session, from the turns
)

const (
	captureBudget = 64 << 10               // bytes that become events in a minute, and after something was typed
	maxOutput     = 16 << 10               // in one event
	captureRest   = 200 * time.Millisecond // of rest: the text is as it will be
	captureDelay  = time.Second            // what has scrolled off waits for more at most so long
	tailLines     = 10                     // are told when a flood is over,
	tailBudget    = 4 << 10                // with so much room at least
	recogniseTime = 2 * time.Second        // for a program to show which it is
)

// capture makes output of the lines that have scrolled off the screen, and of those that stand on it when
// the program rests: a line is what a person reads there. Rows are counted as screen.Scrolled counts them.
type capture struct {
	echo         string   // what we have typed and the terminal shows, without blanks; not told
	nextRow      uint64   // the first row that is not told
	lastLines    []string // of a program that paints its screen: what was told of it last
	pending      string   // lines to be told together
	pendingSince time.Time
	budget       int       // bytes that may be told
	budgetAt     time.Time // when room was made last
	omitted      uint64    // lines that were left out for want of it
}

// capturesLines reports whether what the program writes is told line by line: not before it is known which it is.
func (r *runner) capturesLines(now time.Time) bool {
	if p := r.prog; p != nil && r.binding.Capture == Pipe {
		mayBeOther := r.isAuto && !p.isReady && now.Sub(p.started) < recogniseTime
		return p.driver.Plain && !mayBeOther
	}
	return r.binding.Capture == PTY
}

// isCapturing reports whether lines are told now, of this program.
func (r *runner) isCapturing(now time.Time) bool {
	b := r.binding
	return b != nil && r.prog != nil && len(b.alive()) > 0 && r.capturesLines(now)
}

// captureAnswer tells what the agent answered in a turn that has ended.
func (r *runner) captureAnswer(e *wire.Event) {
	if r.binding.Capture != Pipe || r.prog == nil || r.capturesLines(r.Now()) {
		return
	}
	if answer := session.AnswerOf(e); answer != "" {
		r.emit(answer, e.Seq)
	} else if answer := r.response(); answer != r.turn.lastAnswer {
		r.turn.lastAnswer = answer
		r.emit(answer, 0)
	}
}

// emit appends output to the agent's events: the one session's that is alive, or that of all. of is the
// event whose answer it repeats.
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
		r.Log.Error("telling output", "err", err)
	}
	for _, e := range events {
		if of > 0 {
			e = e.With(session.FieldAnswer, of)
		}
		r.appendEvent(e)
	}
}

// expectEcho takes in that a text is typed, which the terminal will show: that is nothing that the program says.
func (r *runner) expectEcho(text string, now time.Time) {
	if b := r.binding; b != nil {
		b.capture.echo, b.capture.budget, b.capture.budgetAt = driver.Solid(text), captureBudget, now
	}
}

// captureSize is how much of what the program wrote goes to the screen before its lines are looked at: all
// of it, or while they are told no more than the scrollback holds, should every byte be a line.
func (r *runner) captureSize(p []byte) int {
	if r.isCapturing(r.Now()) && r.binding.capture.budget > 0 {
		return min(len(p), scrollback)
	}
	return len(p)
}

func (r *runner) captureScrolled(now time.Time) {
	if !r.isCapturing(now) {
		return
	}
	c, s := &r.binding.capture, r.prog.screen
	if !s.Modes().Alt && (c.budget > 0 || now.Sub(c.budgetAt) >= time.Minute) { // else it would be drawn for nothing
		r.addLines(c.takeLines(s, s.Scrolled()), now)
	}
	if c.pending != "" && now.Sub(c.pendingSince) >= captureDelay {
		r.emitPending()
	}
}

// captureResting tells what stands on the screen when the program rests: above the cursor, or of a program
// that paints its screen all of it, while it waits.
func (r *runner) captureResting(now time.Time) {
	if !r.isCapturing(now) {
		return
	}
	p := r.prog
	isResting, since := !p.screen.Modes().Alt, p.outputAt
	if !p.driver.Plain { // which may draw its cursor ten times a second
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

// captureStanding tells what stands above the visible row end, and how much was left out. Of a program that
// paints its screen those lines are new which did not stand there before.
func (r *runner) captureVisible(end int, now time.Time) {
	c, s := &r.binding.capture, r.prog.screen
	to := s.Scrolled() + uint64(end)
	var lines []string
	if r.prog.driver.Plain {
		c.nextRow = min(c.nextRow, to) // cleared: what comes now is new
		lines = c.takeLines(s, to)
	} else {
		was := c.lastLines
		c.nextRow, c.lastLines = s.Scrolled(), s.Lines()
		lines = slices.DeleteFunc(slices.Clone(c.lastLines[:end]), func(line string) bool { return line == "" || slices.Contains(was, line) })
	}
	if c.omitted > 0 {
		r.emitPending()
		r.emit(fmt.Sprintf("… %d lines left out: asciinema play %s/run/screen.cast", c.omitted, r.Box.Path()), 0)
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

// linesTo are the lines of the rows before end that were not told.
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

// isEcho reports whether a line is what we have typed: the first one that is not blank.
func (c *capture) isEcho(line string) bool {
	if line == "" || c.echo == "" {
		return false
	}
	echo := c.echo
	c.echo = ""
	return strings.HasSuffix(driver.Solid(line), echo)
}

// emitLines tells the lines that wait, without blank ones around them.
func (r *runner) emitPending() {
	c := &r.binding.capture
	r.emit(strings.Trim(c.pending, "\n"), 0)
	c.pending = ""
}

// lastWithText is the last visible row with text on it; -1: none has any.
func lastWithText(s *screen.Screen) int {
	_, y := s.Size()
	for y--; y >= 0 && s.Line(y) == ""; y-- {
	}
	return y
}
