package ptyrun

import (
	"fmt"
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
	PTY  Capture = "pty"  // the lines of its terminal; the answers of an agent on the alternate screen
	Log  Capture = "log"  // nothing: the session's log has the answers of the turns
)

const (
	captureBudget = 64 << 10               // bytes of output a minute, and after a text was typed
	maxOutput     = 16 << 10               // bytes in one event
	maxWaiting    = scrollback / 2         // lines that may wait to be captured
	captureDelay  = time.Second            // between two looks at what has scrolled off
	captureRest   = 200 * time.Millisecond // without output, after which a visible line is final
	tailLines     = 10                     // captured at the end of a flood
	recogniseTime = 2 * time.Second        // for the screen to show which program it is
)

// capture makes session output of a program's lines, each once: those that scrolled off the screen, those above the
// cursor or the input box when the program rests, and the rest of its final screen. Rows are counted as by
// screen.Scrolled.
type capture struct {
	next       uint64    // the first row that was not captured
	capturedAt time.Time // when those before it were
	echo       string    // a typed text, without blanks, that the terminal echoes; not captured
	budget     int       // bytes that may still be captured
	budgetAt   time.Time
}

// captured is what of the program's output becomes output of the agent's sessions.
type captured int

const (
	nothing captured = iota
	answers
	lines
)

// captures says what is captured now:
//
//	       an agent                            a program that no driver knows
//	Pipe   answers                             lines, once that is certain; until then answers
//	PTY    lines; on the alternate screen,     lines
//	       where they do not stay, answers
//	Log    nothing                             nothing
func (r *runner) captures(now time.Time) captured {
	capture := r.binding.Capture
	if capture == Log {
		return nothing
	}
	if r.prog == nil {
		return answers
	}
	is := r.prog.state()
	isCertain := is.isPlain && (!r.isAuto || is.isReady || now.Sub(r.prog.started) >= recogniseTime)
	if capture == PTY && (is.isPlain || !is.isOnAlt) || capture != PTY && isCertain {
		return lines
	}
	return answers
}

// isCapturing reports whether lines are captured for a session now. Those of the alternate screen do not stay.
func (p *terminal) isCapturing(now time.Time) bool {
	isBound := p.r.binding != nil && len(p.r.binding.alive()) > 0
	return isBound && p.r.captures(now) == lines && !p.emulator.Modes().Alt
}

// captureAnswer emits the answer of a turn that has ended.
func (r *runner) captureAnswer(e *wire.Event) {
	if r.prog == nil || r.captures(r.now()) != answers {
		return
	}
	if answer := session.AnswerOf(e); answer != "" {
		r.emit(answer, e.Seq)
	} else if answer := r.prog.answer(); answer != r.lastAnswer {
		r.lastAnswer = answer
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
		r.append(e)
	}
}

// expectEcho keeps a typed text that the terminal will echo out of the output.
func (c *capture) expectEcho(text string) {
	c.echo, c.budgetAt = driver.RemoveBlanks(text), time.Time{}
}

// captureScrolled captures the lines that have scrolled off the screen and would soon be lost, or have waited long. It
// returns how many bytes of output may be drawn before it is called again: any may be the end of a line.
func (p *terminal) captureScrolled(output []byte) int {
	now, c := p.r.now(), &p.capture
	if !p.isCapturing(now) || c.isOverBudget(now) { // lines that are not captured need not be drawn
		return len(output)
	}
	end := p.emulator.Scrolled()
	if end > c.next && (end-c.next >= maxWaiting || now.Sub(c.capturedAt) >= captureDelay) {
		p.captureLines(end, now)
	}
	return min(len(output), maxWaiting)
}

// captureResting captures the lines above the cursor when the program rests, or of an agent those above its input box
// when it waits for input.
func (p *terminal) captureResting(now time.Time) {
	if !p.isCapturing(now) {
		return
	}
	isResting, since := true, p.outputAt
	if !p.driver.Plain { // an agent may redraw its cursor ten times a second
		isResting, since = p.reading.Prompt, p.promptSince
	}
	if !isResting || p.r.mustWait(later(since.Add(captureRest), p.nextRead), now) {
		return
	}
	end := p.reading.BoxRow
	if p.driver.Plain {
		_, end = p.emulator.Cursor()
	}
	p.captureLines(p.emulator.Scrolled()+uint64(end), now)
}

func (p *terminal) captureFinal(now time.Time) {
	if s := p.emulator; p.isCapturing(now) {
		p.captureLines(s.Scrolled()+uint64(lastWithText(s)+1), now)
	}
}

// isOverBudget reports whether too much was captured. Then only the last lines are.
func (c *capture) isOverBudget(now time.Time) bool {
	if now.Sub(c.budgetAt) >= time.Minute {
		c.budget, c.budgetAt = captureBudget, now
	}
	return c.budget <= 0
}

// captureLines captures the lines up to a row, and says how many were omitted.
func (p *terminal) captureLines(end uint64, now time.Time) {
	r, c, s := p.r, &p.capture, p.emulator
	c.capturedAt = now
	top := s.Scrolled()
	first := top - uint64(s.History())
	if c.isOverBudget(now) {
		first = max(first, end-min(end, tailLines))
	}
	c.next = min(c.next, end) // the screen may have been cleared
	if c.next < first {
		r.emit(fmt.Sprintf("… %d lines omitted: asciinema play %s/run/screen.cast", first-c.next, r.Box.Path()), 0)
		c.next = first
	}
	text := ""
	for ; c.next < end; c.next++ {
		line := s.Line(int(int64(c.next) - int64(top)))
		if c.isEcho(line) {
			continue
		}
		if len(text)+len(line) > maxOutput {
			r.emit(strings.Trim(text, "\n"), 0)
			text = ""
		}
		text += line + "\n"
		c.budget -= len(line) + 1
	}
	r.emit(strings.Trim(text, "\n"), 0)
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

// lastWithText returns the last visible row with text; -1: there is none.
func lastWithText(s *screen.Screen) int {
	_, y := s.Size()
	for y--; y >= 0 && s.Line(y) == ""; y-- {
	}
	return y
}
