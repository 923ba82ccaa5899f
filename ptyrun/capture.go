package ptyrun

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/screen"
)

// Capture says what becomes output of the agent's sessions.
type Capture string

// The ways. All else is in the recording.
const (
	Pipe Capture = "pipe" // what the agent says: its answers, or the lines of a program that is not known
	PTY  Capture = "pty"  // the lines of its terminal
	Log  Capture = "log"  // nothing: the answers are in the log of the session, from the turns
)

// capture makes of what stands on the screen output in lines. They come off the
// screen and not out of the bytes, so a line is what a person reads there:
// without escape sequences and torn characters, as it stood in the end where it
// was painted over, and whole where the terminal has wrapped it.
type capture struct {
	lines
	where string // to see what was left out
	echo  string // what we have typed and the terminal shows, squeezed; not told
	out   []string
	size  int
	late  time.Time // when what waits is told at the latest; zero: nothing waits

	room   int       // bytes that may be told
	filled time.Time // when that was counted
	over   bool      // there is no room: until the program rests
	left   uint64    // rows that were left out meanwhile
}

// How much becomes events. What a program writes without end would fill the disk
// with them, and nobody reads it; the recording has it, and rotates.
const (
	maxRoom   = 64 << 10               // at once, and after something was typed
	roomEvery = time.Second            // and a KiB
	moreRoom  = 1 << 10                // so often
	maxOutput = 16 << 10               // in one event
	linesRest = 200 * time.Millisecond // without another text: what stands is told
	linesLate = time.Second            // while there is another all the time
	floodRest = 500 * time.Millisecond // without another text: a flood is over
	tailLines = 10                     // told at the end of a flood
)

// refill makes room as time goes by.
func (c *capture) refill(now time.Time) {
	if n := now.Sub(c.filled) / roomEvery; n > 0 {
		c.room = min(maxRoom, c.room+int(min(n, maxRoom))*moreRoom)
		c.filled = now
	}
}

// fresh makes all room: somebody has typed something.
func (c *capture) fresh(now time.Time) { c.room, c.filled = maxRoom, now }

// wrote takes in the lines that have left the screen. It returns what is to be
// told.
func (c *capture) wrote(s *screen.Screen, now time.Time) (out []string) {
	c.refill(now)
	if c.over {
		_, lost := c.gone(s, false)
		c.left += lost
		return nil
	}
	list, lost := c.gone(s, true)
	c.left += lost
	out = c.add(list, now)
	if c.room <= 0 && !c.over {
		c.over = true
		out = append(append(out, c.take()...), "… more than is kept here: "+c.where)
	}
	return out
}

// add takes lines, and returns what is to be told at once: so much that it fills
// an event.
func (c *capture) add(list []string, now time.Time) (out []string) {
	for _, l := range list {
		if c.echo != "" && l != "" {
			shown := strings.HasSuffix(squeezed(l), c.echo)
			c.echo = ""
			if shown {
				continue
			}
		}
		if c.room <= 0 {
			c.left++
			continue
		}
		c.room -= len(l) + 1
		for len(l) > maxOutput {
			cut := maxOutput
			for !utf8.RuneStart(l[cut]) {
				cut--
			}
			out = append(append(out, c.take()...), l[:cut])
			l = l[cut:]
		}
		if c.size+len(l) > maxOutput {
			out = append(out, c.take()...)
		}
		if c.out == nil {
			c.late = now.Add(linesLate)
		}
		c.out = append(c.out, l)
		c.size += len(l) + 1
	}
	return out
}

// take is what waits, as one text; nothing where that is blank.
func (c *capture) take() []string {
	text := strings.Trim(strings.Join(c.out, "\n"), "\n")
	c.out, c.size, c.late = nil, 0, time.Time{}
	if text == "" {
		return nil
	}
	return []string{text}
}

// rest takes in that the program has written nothing since wrote: what stands
// above the row end is told when it has stood for long enough, and where a flood
// is over what it left out. The second result is when to ask again.
func (c *capture) rest(s *screen.Screen, end int, wrote, now time.Time) (out []string, next time.Time) {
	return c.rested(s, end, c.stood.since(s, wrote), now)
}

// rested is rest, of a screen that shows the same text since changed.
func (c *capture) rested(s *screen.Screen, end int, changed, now time.Time) (out []string, next time.Time) {
	c.refill(now)
	if c.over {
		at := changed.Add(floodRest)
		if c.room <= 0 {
			at = later(at, c.filled.Add(roomEvery))
		}
		if now.Before(at) {
			return nil, at
		}
		_, lost := c.gone(s, false)
		c.left += lost
		out = append(out, c.note()...)
		c.over = false
		out = append(out, c.add(above(s, end, tailLines), now)...)
		out = append(out, c.take()...)
		c.skip(s)
		return out, time.Time{}
	}
	if at := changed.Add(linesRest); now.Before(at) {
		if !c.late.IsZero() && !now.Before(c.late) {
			return c.take(), at
		}
		if !c.late.IsZero() && c.late.Before(at) {
			at = c.late
		}
		return nil, at
	}
	if c.seen == s.Version() && c.out == nil && c.left == 0 {
		return nil, time.Time{}
	}
	c.seen = s.Version()
	out = c.add(c.standing(s, end), now)
	out = append(out, c.take()...)
	if c.left > 0 {
		out = append(out, c.note()...)
	}
	return out, time.Time{}
}

// note says how much was left out.
func (c *capture) note() []string {
	n := c.left
	c.left = 0
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("… %d lines left out: %s", n, c.where)}
}

// end is what is left when the program has ended.
func (c *capture) end(s *screen.Screen, now time.Time) []string {
	out := c.wrote(s, now)
	if c.over {
		c.room = max(c.room, tailLines<<10)
	}
	more, _ := c.rested(s, textual(s), time.Time{}, now)
	return append(out, more...)
}

// above are the last n lines above the visible row end.
func above(s *screen.Screen, end, n int) (out []string) {
	for y := max(end-n, -s.History()); y < end; y++ {
		out = append(out, s.Line(y))
	}
	return out
}

// textual is the number of visible rows up to the last one with text.
func textual(s *screen.Screen) int {
	all := s.Lines()
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return len(all)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
