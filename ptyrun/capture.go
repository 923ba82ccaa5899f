package ptyrun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Capture says what becomes output of the agent's sessions.
type Capture string

// The ways. All else is in the recording.
const (
	Pipe Capture = "pipe" // what the agent says: its answers, or the lines of a program that is not known
	PTY  Capture = "pty"  // the lines of its terminal
	Log  Capture = "log"  // nothing: the answers are in the log of the session, from the turns
)

// How much becomes events. What a program writes without end would fill the disk with them,
// and nobody reads it; the recording has it.
const (
	maxRoom   = 64 << 10               // at once, and after something was typed
	roomEvery = time.Second            // and a KiB
	moreRoom  = 1 << 10                // so often
	maxOutput = 16 << 10               // in one event
	linesRest = 200 * time.Millisecond // the same text for so long: it is as it will be
	linesLate = time.Second            // what has scrolled off waits for more at most so long
	tailLines = 10                     // are told when a flood is over,
	tailRoom  = 4 << 10                // with so much room at least
	recognise = 2 * time.Second        // for a program to show which it is
)

// capture makes output of the lines that have scrolled off the screen, and of those that
// stand on it when the program rests. They come off the screen and not out of the bytes, so
// a line is what a person reads there. Rows are counted as screen.Scrolled counts them.
type capture struct {
	recording string // where to see what was left out
	echo      string // what we have typed and the terminal shows, without blanks; not told
	isDecided bool   // whether the program is one that is known, so that its lines are no output

	row   uint64   // the first row that is not told
	shown []string // of a program that paints its screen: what was told of it last

	text    []string // the screen at the last look
	changed time.Time

	waiting []string // lines to be told together
	size    int      // their bytes
	since   time.Time

	room   int       // bytes that may be told
	filled time.Time // when room was made last
	left   uint64    // lines that were left out for want of it
}

func newCapture(dir string, now time.Time) capture {
	return capture{recording: "asciinema play " + dir + "/run/screen.cast", room: maxRoom, filled: now}
}

// capturesLines reports whether what the program writes is told line by line: not before it
// is known which it is.
func (r *runner) capturesLines(now time.Time) bool {
	b, p := r.binding, r.prog
	if b.Capture != Pipe || p == nil {
		return b.Capture == PTY
	}
	mayBeOther := r.isAuto && p.driver.Plain && !p.isReady && now.Sub(p.started) < recognise
	b.capture.isDecided = b.capture.isDecided || !mayBeOther
	return b.capture.isDecided && p.driver.Plain
}

// isCapturing reports whether lines are told now, of this program.
func (r *runner) isCapturing(now time.Time) bool {
	b := r.binding
	return b != nil && r.prog != nil && b.isKnown && len(aliveOf(b.all)) > 0 && r.capturesLines(now)
}

// captureAnswer tells what the agent answered in a turn that has ended.
func (r *runner) captureAnswer(e *wire.Event) {
	if r.binding.Capture != Pipe || r.prog == nil || r.capturesLines(r.Now()) {
		return
	}
	answer, of := session.AnswerOf(e), e.Seq
	if answer == "" {
		if answer = r.response(); answer == r.turn.answer {
			return
		}
		r.turn.answer, of = answer, 0
	}
	r.emit(answer, of)
}

// emit appends output to the agent's events: the one session's that is alive, or that of
// all. of is the event whose answer it repeats.
func (r *runner) emit(text string, of uint64) {
	alive := aliveOf(r.binding.all)
	if text == "" || len(alive) == 0 {
		return
	}
	id := wire.UUID("")
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

func (r *runner) emitAll(output []string) {
	for _, text := range output {
		r.emit(text, 0)
	}
}

// expectEcho takes in that a text is typed, which the terminal will show: that is nothing
// that the program says.
func (r *runner) expectEcho(text string, now time.Time) {
	if b := r.binding; b != nil {
		b.capture.echo, b.capture.room, b.capture.filled = withoutBlanks(text), maxRoom, now
	}
}

// captureSize is how much of what the program wrote goes to the screen before its lines are
// looked at: all of it, or while they are told no more than the scrollback holds, should
// every byte be a line.
func (r *runner) captureSize(p []byte) int {
	if !r.isCapturing(r.Now()) || r.binding.capture.room <= 0 {
		return len(p)
	}
	return min(len(p), scrollback)
}

// captureScrolled tells what has left the screen.
func (r *runner) captureScrolled(now time.Time) {
	if r.isCapturing(now) {
		r.emitAll(r.binding.capture.scrolled(r.prog.screen, now))
	}
}

// captureResting tells what stands on the screen when the program rests: above the cursor,
// or of a program that paints its screen all of it, while it waits.
func (r *runner) captureResting(now time.Time) (next time.Time) {
	if !r.isCapturing(now) {
		return next
	}
	p := r.prog
	_, end := p.screen.Cursor()
	if p.driver.Plain && p.screen.Modes().Alt {
		return next
	}
	if !p.driver.Plain {
		if !p.reading.Prompt && p.reading.Dialog == nil {
			return next
		}
		end = lastWithText(p.screen) + 1
	}
	c := &r.binding.capture
	c.refill(now)
	if text := p.screen.Lines(); !slices.Equal(text, c.text) {
		c.text, c.changed = text, now
	}
	if p.flooding { // all of its lines may be alike
		c.changed = later(c.changed, p.changed)
	}
	if at := c.changed.Add(linesRest); now.Before(at) { // it may draw its cursor ten times a second
		return at
	}
	r.emitAll(c.standing(p.screen, end, !p.driver.Plain, now))
	return next
}

// captureLast tells what is left of a program that has ended.
func (r *runner) captureLast(now time.Time) {
	if s := r.prog.screen; r.isCapturing(now) && !s.Modes().Alt {
		r.emitAll(r.binding.capture.scrolled(s, now))
		r.emitAll(r.binding.capture.standing(s, lastWithText(s)+1, !r.prog.driver.Plain, now))
	}
}

// refill makes room as time goes by.
func (c *capture) refill(now time.Time) {
	if n := now.Sub(c.filled) / roomEvery; n > 0 {
		c.room = min(maxRoom, c.room+int(min(n, maxRoom))*moreRoom)
		c.filled = now
	}
}

// skip takes what the screen shows now as told.
func (c *capture) skip(s *screen.Screen) {
	_, y := s.Cursor()
	c.row, c.shown = s.Scrolled()+uint64(y), s.Lines()
}

// scrolled takes in the lines that have left the screen, and returns texts to be told.
func (c *capture) scrolled(s *screen.Screen, now time.Time) (out []string) {
	c.refill(now)
	if c.row < s.Scrolled() && !s.Modes().Alt {
		out = c.add(c.linesTo(s, s.Scrolled()), now)
	}
	if len(c.waiting) > 0 && now.Sub(c.since) >= linesLate {
		out = append(out, c.take()...)
	}
	return out
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

// newLines are the lines above the visible row end that were not told. Of a program that
// paints its screen those are new which did not stand there before.
func (c *capture) newLines(s *screen.Screen, end int, isPainted bool) (lines []string) {
	to := s.Scrolled() + uint64(end)
	if !isPainted {
		c.row = min(c.row, to) // cleared: what comes now is new
		return c.linesTo(s, to)
	}
	was := c.shown
	c.row, c.shown = s.Scrolled(), s.Lines()
	for _, line := range c.shown[:end] {
		if line != "" && !slices.Contains(was, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// standing tells what stands above the visible row end, and how much was left out.
func (c *capture) standing(s *screen.Screen, end int, isPainted bool, now time.Time) (out []string) {
	lines := c.newLines(s, end, isPainted)
	if c.left > 0 {
		out = append(c.take(), fmt.Sprintf("… %d lines left out: %s", c.left, c.recording))
		c.left, c.room = 0, max(c.room, tailRoom)
		lines = lines[max(0, len(lines)-tailLines):]
	}
	out = append(out, c.add(lines, now)...)
	return append(out, c.take()...)
}

// add takes lines, and returns those texts that are full.
func (c *capture) add(lines []string, now time.Time) (out []string) {
	for _, line := range lines {
		if c.isEcho(line) {
			continue
		}
		if c.room <= 0 {
			c.left++
			continue
		}
		c.room -= len(line) + 1
		if c.size+len(line) > maxOutput {
			out = append(out, c.take()...)
		}
		if len(c.waiting) == 0 {
			c.since = now
		}
		c.waiting = append(c.waiting, line)
		c.size += len(line) + 1
	}
	return out
}

// isEcho reports whether a line is what we have typed, as the terminal shows it.
func (c *capture) isEcho(line string) bool {
	if c.echo == "" || line == "" {
		return false
	}
	echo := c.echo
	c.echo = ""
	return strings.HasSuffix(withoutBlanks(line), echo)
}

// take is what waits, as one text; nothing where that is blank.
func (c *capture) take() []string {
	text := strings.Trim(strings.Join(c.waiting, "\n"), "\n")
	c.waiting, c.size = nil, 0
	if text == "" {
		return nil
	}
	return []string{text}
}

// lastWithText is the last visible row with text on it; -1: none has any.
func lastWithText(s *screen.Screen) int {
	_, rows := s.Size()
	for y := rows - 1; y >= 0; y-- {
		if s.Line(y) != "" {
			return y
		}
	}
	return -1
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
