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
	maxRoom   = 64 << 10               // bytes that become events in a minute, and after something was typed
	maxOutput = 16 << 10               // in one event
	linesRest = 200 * time.Millisecond // of rest: the text is as it will be
	linesLate = time.Second            // what has scrolled off waits for more at most so long
	tailLines = 10                     // are told when a flood is over,
	tailRoom  = 4 << 10                // with so much room at least
	recognise = 2 * time.Second        // for a program to show which it is
)

// capture makes output of the lines that have scrolled off the screen, and of those that stand on it when
// the program rests: a line is what a person reads there. Rows are counted as screen.Scrolled counts them.
type capture struct {
	echo    string   // what we have typed and the terminal shows, without blanks; not told
	row     uint64   // the first row that is not told
	shown   []string // of a program that paints its screen: what was told of it last
	waiting string   // lines to be told together
	since   time.Time
	room    int       // bytes that may be told
	filled  time.Time // when room was made last
	left    uint64    // lines that were left out for want of it
}

// capturesLines reports whether what the program writes is told line by line: not before it is known which it is.
func (r *runner) capturesLines(now time.Time) bool {
	if p := r.prog; p != nil && r.binding.Capture == Pipe {
		mayBeOther := r.isAuto && !p.isReady && now.Sub(p.started) < recognise
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
	} else if answer := r.response(); answer != r.turn.answer {
		r.turn.answer = answer
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
		r.say(e)
	}
}

// expectEcho takes in that a text is typed, which the terminal will show: that is nothing that the program says.
func (r *runner) expectEcho(text string, now time.Time) {
	if b := r.binding; b != nil {
		b.capture.echo, b.capture.room, b.capture.filled = driver.Solid(text), maxRoom, now
	}
}

// captureSize is how much of what the program wrote goes to the screen before its lines are looked at: all
// of it, or while they are told no more than the scrollback holds, should every byte be a line.
func (r *runner) captureSize(p []byte) int {
	if r.isCapturing(r.Now()) && r.binding.capture.room > 0 {
		return min(len(p), scrollback)
	}
	return len(p)
}

func (r *runner) captureScrolled(now time.Time) {
	if !r.isCapturing(now) {
		return
	}
	c, s := &r.binding.capture, r.prog.screen
	if !s.Modes().Alt && (c.room > 0 || now.Sub(c.filled) >= time.Minute) { // else it would be drawn for nothing
		r.addLines(c.linesTo(s, s.Scrolled()), now)
	}
	if c.waiting != "" && now.Sub(c.since) >= linesLate {
		r.emitLines()
	}
}

// captureResting tells what stands on the screen when the program rests: above the cursor, or of a program
// that paints its screen all of it, while it waits.
func (r *runner) captureResting(now time.Time) {
	if !r.isCapturing(now) {
		return
	}
	p := r.prog
	isResting, since := !p.screen.Modes().Alt, p.changed
	if !p.driver.Plain { // which may draw its cursor ten times a second
		isResting, since = p.reading.Prompt || p.reading.Dialog != nil, later(p.promptAt, p.since)
	}
	if !isResting || r.awaits(later(since.Add(linesRest), p.readAt), now) {
		return
	}
	end := lastWithText(p.screen) + 1
	if p.driver.Plain {
		_, end = p.screen.Cursor()
	}
	r.captureStanding(end, now)
}

func (r *runner) captureLast(now time.Time) {
	if r.isCapturing(now) && !r.prog.screen.Modes().Alt {
		r.captureScrolled(now)
		r.captureStanding(lastWithText(r.prog.screen)+1, now)
	}
}

// captureStanding tells what stands above the visible row end, and how much was left out. Of a program that
// paints its screen those lines are new which did not stand there before.
func (r *runner) captureStanding(end int, now time.Time) {
	c, s := &r.binding.capture, r.prog.screen
	to := s.Scrolled() + uint64(end)
	var lines []string
	if r.prog.driver.Plain {
		c.row = min(c.row, to) // cleared: what comes now is new
		lines = c.linesTo(s, to)
	} else {
		was := c.shown
		c.row, c.shown = s.Scrolled(), s.Lines()
		lines = slices.DeleteFunc(slices.Clone(c.shown[:end]), func(line string) bool { return line == "" || slices.Contains(was, line) })
	}
	if c.left > 0 {
		r.emitLines()
		r.emit(fmt.Sprintf("… %d lines left out: asciinema play %s/run/screen.cast", c.left, r.Box.Path()), 0)
		c.left, c.room = 0, max(c.room, tailRoom)
		lines = lines[max(0, len(lines)-tailLines):]
	}
	r.addLines(lines, now)
	r.emitLines()
}

func (c *capture) skip(s *screen.Screen) {
	_, y := s.Cursor()
	c.row, c.shown = s.Scrolled()+uint64(y), s.Lines()
}

// linesTo are the lines of the rows before end that were not told.
func (c *capture) linesTo(s *screen.Screen, end uint64) (lines []string) {
	top := s.Scrolled()
	if first := top - uint64(s.History()); c.row < first {
		c.left += first - c.row
		c.row = first
	}
	for ; c.row < end; c.row++ {
		lines = append(lines, s.Line(int(int64(c.row)-int64(top))))
	}
	return lines
}

func (r *runner) addLines(lines []string, now time.Time) {
	c := &r.binding.capture
	if now.Sub(c.filled) >= time.Minute {
		c.room, c.filled = maxRoom, now
	}
	for _, line := range lines {
		if c.isEcho(line) {
			continue
		}
		if c.room <= 0 {
			c.left++
			continue
		}
		if len(c.waiting)+len(line) > maxOutput {
			r.emitLines()
		}
		if c.waiting == "" {
			c.since = now
		}
		c.waiting += line + "\n"
		c.room -= len(line) + 1
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
func (r *runner) emitLines() {
	c := &r.binding.capture
	r.emit(strings.Trim(c.waiting, "\n"), 0)
	c.waiting = ""
}

// lastWithText is the last visible row with text on it; -1: none has any.
func lastWithText(s *screen.Screen) int {
	_, y := s.Size()
	for y--; y >= 0 && s.Line(y) == ""; y-- {
	}
	return y
}
