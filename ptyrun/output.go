package ptyrun

import (
	"time"

	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// What the agent emits in its sessions: its answers, or the lines of its
// terminal.

// inLines reports whether what the program writes is told line by line: not
// before it is known which it is.
func (r *runner) inLines(now time.Time) bool {
	s, p := r.sitting, r.prog
	if s.Capture != Pipe || p == nil {
		return s.Capture == PTY
	}
	if !s.decided && !(r.Auto && p.driver.Plain && !p.ready && now.Sub(p.began) < unmasks) {
		s.decided = true
	}
	return s.decided && p.driver.Plain
}

// tellAnswer tells what the agent answered in a turn that has ended.
func (r *runner) tellAnswer(e *wire.Event) {
	s := r.sitting
	if s.Capture != Pipe || r.prog == nil || r.inLines(r.Now()) {
		return
	}
	answer := session.AnswerOf(e)
	of := e.Seq
	if answer == "" {
		if answer = r.response(); answer == r.said {
			return
		}
		r.said, of = answer, 0
	}
	r.emit(answer, of)
}

// emit appends output to the agent's events: the one session's that is alive, or
// that of all. of is the event whose answer it repeats.
func (r *runner) emit(text string, of uint64) {
	alive := r.sitting.alive()
	if text == "" || len(alive) == 0 {
		return
	}
	id := wire.UUID("")
	if len(alive) == 1 {
		id = alive[0]
	}
	events, err := session.Events(id, wire.SessionEvent{Kind: "agent_output", Stream: "std_out", Content: text})
	if err != nil {
		r.log.Error("telling output", "err", err)
		return
	}
	for _, e := range events {
		if of > 0 {
			e = e.With(session.FieldAnswer, of)
		}
		r.say(e)
	}
}

// kept reports whether lines are told now, of this program.
func (r *runner) kept(now time.Time) bool {
	s, p := r.sitting, r.prog
	return s != nil && p != nil && s.known && len(s.alive()) > 0 && r.inLines(now)
}

// echoes takes in that a text is typed, which the terminal will show: that is
// nothing that the program says.
func (r *runner) echoes(text string, now time.Time) {
	if s := r.sitting; s != nil {
		s.capture.echo = squeezed(text)
		s.capture.makeRoom(now)
	}
}

// piece is how much of what the program wrote goes to the screen before its lines
// are looked at: all of it, or while they are told no more than the scrollback
// holds, should every byte be a line.
func (r *runner) piece(p []byte) int {
	if !r.kept(r.Now()) || r.sitting.capture.flooded() {
		return len(p)
	}
	return min(len(p), scrollback)
}

// tellScrolledOff tells what has left the screen.
func (r *runner) tellScrolledOff(now time.Time) {
	if r.kept(now) {
		r.emitAll(r.sitting.capture.scrolledOff(r.prog.screen, now))
	}
}

// tellLines tells what stands on the screen when the program rests: above the cursor,
// or of a program that paints its screen all of it, while it waits.
func (r *runner) tellLines(now time.Time) (next time.Time) {
	if !r.kept(now) {
		return next
	}
	p := r.prog
	_, end := p.screen.Cursor()
	if p.screen.Modes().Alt && p.driver.Plain {
		return next
	}
	if !p.driver.Plain {
		if !p.reading.Prompt && p.reading.Dialog == nil {
			return next
		}
		end = lastWithText(p.screen) + 1
	}
	out, next := r.sitting.capture.rest(p.screen, end, !p.driver.Plain, now)
	r.emitAll(out)
	return next
}

// lastLines tells what is left of a program that has ended.
func (r *runner) lastLines(now time.Time) {
	if r.kept(now) && !r.prog.screen.Modes().Alt {
		r.emitAll(r.sitting.capture.end(r.prog.screen, !r.prog.driver.Plain, now))
	}
}

func (r *runner) emitAll(output []string) {
	for _, text := range output {
		r.emit(text, 0)
	}
}
