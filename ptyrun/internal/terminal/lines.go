package terminal

import (
	"time"

	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/screen"
)

const (
	maxWaiting = screen.Scrollback / 2  // lines that may wait for the follower
	linesDelay = time.Second            // between two looks at what has scrolled off
	linesRest  = 200 * time.Millisecond // without output, after which a visible line is final
)

// finalLines says which lines of a terminal the follower has got: those that scrolled off the screen, those above the
// cursor or the input box when the program rests, and the rest of its final screen. Rows are counted as by
// screen.Scrolled.
type finalLines struct {
	next    uint64    // the first row that it has not
	givenAt time.Time // when it got those before
}

// maxLines returns how many lines the follower wants. Those of the alternate screen do not stay.
func (p *Terminal) maxLines() int {
	if p.emulator.Modes().Alt {
		return 0
	}
	return p.o.Follower.MaxLines()
}

// giveScrolled gives the lines that have scrolled off the screen and would soon be lost, or have waited long. It returns
// how many bytes of output may be drawn before it is called again: any may be the end of a line.
func (p *Terminal) giveScrolled(output []byte) int {
	if p.maxLines() < maxWaiting { // lines that nobody wants need not be drawn
		return len(output)
	}
	now, end, l := p.r.Now(), p.emulator.Scrolled(), &p.lines
	if end > l.next && (end-l.next >= maxWaiting || now.Sub(l.givenAt) >= linesDelay) {
		p.giveLines(end, now)
	}
	return min(len(output), maxWaiting)
}

// giveResting gives the lines above the cursor when the program rests, or of an agent those above its input box when it
// waits for input.
func (p *Terminal) giveResting(now time.Time) {
	if p.maxLines() == 0 {
		return
	}
	isResting, since := true, p.outputAt
	if !p.driver.Plain { // an agent may redraw its cursor ten times a second
		isResting, since = p.reading.Prompt, p.promptSince
	}
	if !isResting || p.r.MustWait(loop.Later(since.Add(linesRest), p.nextRead), now) {
		return
	}
	end := p.reading.BoxRow
	if p.driver.Plain {
		_, end = p.emulator.Cursor()
	}
	p.giveLines(p.emulator.Scrolled()+uint64(end), now)
}

// giveLines gives the lines up to a row.
func (p *Terminal) giveLines(end uint64, now time.Time) {
	wanted := p.maxLines()
	if wanted == 0 {
		return
	}
	s, l := p.emulator, &p.lines
	top := s.Scrolled()
	next := min(l.next, end) // the screen may have been cleared
	first := max(next, top-uint64(s.History()), end-min(end, uint64(wanted)))
	l.next, l.givenAt = max(first, end), now
	lines := make([]string, 0, l.next-first)
	for row := first; row < end; row++ {
		lines = append(lines, s.Line(int(int64(row)-int64(top))))
	}
	if len(lines) > 0 || first > next {
		p.o.Follower.HandleLines(lines, first-next)
	}
}

// ForgetLines forgets the lines that the follower did not get.
func (p *Terminal) ForgetLines() {
	_, y := p.emulator.Cursor()
	p.lines.next = p.emulator.Scrolled() + uint64(y)
}

// lastWithText returns the last visible row with text; -1: there is none.
func lastWithText(s *screen.Screen) int {
	_, y := s.Size()
	for y--; y >= 0 && s.Line(y) == ""; y-- {
	}
	return y
}
