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
	s, p := r.binding, r.prog
	if s.Capture != Pipe || p == nil {
		return s.Capture == PTY
	}
	if !s.decided && !(r.Auto && p.driver.Plain && !p.isReady && now.Sub(p.started) < unmasks) {
		s.decided = true
	}
	return s.decided && p.driver.Plain
}

// tellAnswer tells what the agent answered in a turn that has ended.
func (r *runner) tellAnswer(e *wire.Event) {
	s := r.binding
	if s.Capture != Pipe || r.prog == nil || r.inLines(r.Now()) {
		return
	}
	answer := session.AnswerOf(e)
	of := e.Seq
	if answer == "" {
		if answer = r.response(); answer == r.turn.answer {
			return
		}
		r.turn.answer, of = answer, 0
	}
	r.emit(answer, of)
}

// emit appends output to the agent's events: the one session's that is alive, or
// that of all. of is the event whose answer it repeats.
func (r *runner) emit(text string, of uint64) {
	alive := r.binding.alive()
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
	s, p := r.binding, r.prog
	return s != nil && p != nil && s.known && len(s.alive()) > 0 && r.inLines(now)
}

// expectEcho takes in that a text is typed, which the terminal will show: that is
// nothing that the program says.
func (r *runner) expectEcho(text string, now time.Time) {
	if s := r.binding; s != nil {
		s.capture.echo = withoutBlanks(text)
		s.capture.makeRoom(now)
	}
}

// captureSize is how much of what the program wrote goes to the screen before its lines
// are looked at: all of it, or while they are told no more than the scrollback
// holds, should every byte be a line.
func (r *runner) captureSize(p []byte) int {
	if !r.kept(r.Now()) || r.binding.capture.flooded() {
		return len(p)
	}
	return min(len(p), scrollback)
}

// captureScrolled tells what has left the screen.
func (r *runner) captureScrolled(now time.Time) {
	if r.kept(now) {
		r.emitAll(r.binding.capture.scrolledOff(r.prog.screen, now))
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
	out, next := r.binding.capture.rest(p.screen, end, !p.driver.Plain, now)
	r.emitAll(out)
	return next
}

// captureLast tells what is left of a program that has ended.
func (r *runner) captureLast(now time.Time) {
	if r.kept(now) && !r.prog.screen.Modes().Alt {
		r.emitAll(r.binding.capture.end(r.prog.screen, !r.prog.driver.Plain, now))
	}
}

func (r *runner) emitAll(output []string) {
	for _, text := range output {
		r.emit(text, 0)
	}
}
