package ptyrun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/screen"
)

// Capture says what becomes output of the agent's sessions.
type Capture string

// The ways. All else is in the recording.
const (
	Pipe Capture = "pipe" // what the agent says: its answers, or the lines of a program that is not known
	PTY  Capture = "pty"  // the lines of its terminal
	Log  Capture = "log"  // nothing: the answers are in the log of the session, from the turns
)

// How much becomes events. What a program writes without end would fill the disk
// with them, and nobody reads it; the recording has it.
const (
	maxRoom   = 64 << 10               // at once, and after something was typed
	roomEvery = time.Second            // and a KiB
	moreRoom  = 1 << 10                // so often
	maxOutput = 16 << 10               // in one event
	linesRest = 200 * time.Millisecond // the same text for so long: it is as it will be
	linesLate = time.Second            // what has scrolled off waits for more at most so long
	tailLines = 10                     // are told when a flood is over,
	tailRoom  = 4 << 10                // with so much room at least
)

// capture makes output of the lines that have scrolled off the screen, and of those
// that stand on it when the program rests. They come off the screen and not out of
// the bytes, so a line is what a person reads there. Rows are counted as
// screen.Scrolled counts them.
type capture struct {
	recording string // where to see what was left out
	echo      string // what we have typed and the terminal shows, without blanks; not told

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

// refill makes room as time goes by.
func (c *capture) refill(now time.Time) {
	if n := now.Sub(c.filled) / roomEvery; n > 0 {
		c.room = min(maxRoom, c.room+int(min(n, maxRoom))*moreRoom)
		c.filled = now
	}
}

// makeRoom makes all room: somebody has typed something.
func (c *capture) makeRoom(now time.Time) { c.room, c.filled = maxRoom, now }

// flooded reports whether the program writes more than is told.
func (c *capture) flooded() bool { return c.room <= 0 }

// skip takes what the screen shows now as told.
func (c *capture) skip(s *screen.Screen) {
	_, y := s.Cursor()
	c.row, c.shown = s.Scrolled()+uint64(y), s.Lines()
}

// scrolledOff takes in the lines that have left the screen. It returns events.
func (c *capture) scrolledOff(s *screen.Screen, now time.Time) (out []string) {
	c.refill(now)
	if c.row < s.Scrolled() && !s.Modes().Alt {
		out = c.add(c.upTo(s, s.Scrolled()), now)
	}
	if len(c.waiting) > 0 && now.Sub(c.since) >= linesLate {
		out = append(out, c.take()...)
	}
	return out
}

// upTo are the lines of the rows before end that were not told.
func (c *capture) upTo(s *screen.Screen, end uint64) (lines []string) {
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

// standing are the lines above the visible row end that were not told. Of a program
// that paints its screen those are new which did not stand there before.
func (c *capture) standing(s *screen.Screen, end int, painted bool) (lines []string) {
	if painted {
		was := c.shown
		c.shown = s.Lines()
		for _, line := range c.shown[:end] {
			if line != "" && !slices.Contains(was, line) {
				lines = append(lines, line)
			}
		}
		c.row = s.Scrolled()
		return lines
	}
	to := s.Scrolled() + uint64(end)
	if to < c.row { // cleared: what comes now is new
		c.row = to
	}
	return c.upTo(s, to)
}

// rest tells what stands above the visible row end, if the screen has shown the same
// text for long enough: a program that waits may still draw its cursor ten times a
// second. next is when to ask again.
func (c *capture) rest(s *screen.Screen, end int, painted bool, now time.Time) (out []string, next time.Time) {
	c.refill(now)
	if text := s.Lines(); !slices.Equal(text, c.text) {
		c.text, c.changed = text, now
	}
	if at := c.changed.Add(linesRest); now.Before(at) {
		return nil, at
	}
	return c.tell(s, end, painted, now), time.Time{}
}

// tell tells what stands above the visible row end, and how much was left out.
func (c *capture) tell(s *screen.Screen, end int, painted bool, now time.Time) []string {
	lines := c.standing(s, end, painted)
	var out []string
	if c.left > 0 {
		out = append(c.take(), fmt.Sprintf("… %d lines left out: %s", c.left, c.recording))
		c.left = 0
		c.room = max(c.room, tailRoom)
		lines = lines[max(0, len(lines)-tailLines):]
	}
	out = append(out, c.add(lines, now)...)
	return append(out, c.take()...)
}

// end is what is left when the program has ended.
func (c *capture) end(s *screen.Screen, painted bool, now time.Time) []string {
	out := c.scrolledOff(s, now)
	return append(out, c.tell(s, lastWithText(s)+1, painted, now)...)
}

// add takes lines, and returns those events that are full.
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
