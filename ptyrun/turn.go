package ptyrun

import (
	"cmp"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// turn is the turn as far as only the screen tells of it.
type turn struct {
	id     string // ours; "" while the program's hooks tell
	text   string // with which it began, where that was ours
	from   uint64 // how far the screen had scrolled
	isOurs bool   // a text of ours began it, and its end has not been told
	isCut  bool   // we have interrupted it
	answer string // told last
}

// beginTurn takes in that a text of ours was taken, and is the turn's id where it is known.
func (r *runner) beginTurn(text string, now time.Time) (id string) {
	p, previous := r.prog, r.prog.told
	p.told, p.detail, p.since, p.worked = reducer.Thinking, "", now, showsWork(p.reading)
	if p.reading.Prompt {
		p.promptAt = now
	}
	r.turn.id, r.turn.isOurs, r.turn.text = "", true, text
	if !r.hasHooks() {
		r.sayTurnStarted(text)
		r.sayState(previous, reducer.Thinking, "")
	} else if turn := r.state.Turn(); turn.Status == reducer.TurnBusy { // Codex shows a message before its hook has named the turn
		return turn.ID
	}
	return r.turn.id
}

func (r *runner) sayTurnStarted(prompt string) {
	r.turn.id = string(wire.NewID())
	r.say(r.turnEvent(wire.TurnStarted, r.turn.id), "prompt", clip(prompt, maxResponse))
}

// turnEvent is an event about a turn that only the screen tells of. Its thread is the run.
func (r *runner) turnEvent(kind, turn string) wire.Event {
	return wire.Event{Kind: kind, TurnID: turn}.With("transport", "pty").With("thread_id", r.Run)
}

// endTurn says that the turn is over, where only the screen tells, with what was answered in it.
func (r *runner) endTurn(rd driver.Reading, previous, shown reducer.Activity) {
	p, t, known := r.prog, &r.turn, r.state.Turn()
	if (t.isOurs || t.id != "" || known.Status == reducer.TurnBusy) && !r.hasHooks() && previous != reducer.Starting && p.isReady {
		id, status, failure, text := cmp.Or(t.id, known.ID), reducer.Completed, "", r.response()
		switch {
		case t.isCut:
			status = reducer.Interrupted
			if text == t.answer {
				text = ""
			}
		case rd.Activity == reducer.Error:
			status, failure = reducer.Failed, rd.Detail
		}
		t.answer = cmp.Or(text, t.answer)
		r.say(r.turnEvent(wire.TurnCompleted, id).With("status", status), "error", failure, "response", text)
		if shown == reducer.Idle {
			r.say(r.turnEvent("turn_idle", id))
		}
	}
	t.id, t.isOurs, t.isCut, p.worked = "", false, false, false
}

// maxResponse is how much of an answer an event keeps.
const maxResponse = 64 << 10

// response cuts the answer to the last prompt out of what the program has written since.
func (r *runner) response() string {
	p := r.prog
	_, rows := p.screen.Size()
	n := rows + int(min(p.screen.Scrolled()-min(r.turn.from, p.screen.Scrolled()), scrollback))
	return clip(p.driver.Response(p.screen.Tail(n), r.turn.text), maxResponse)
}

// clip is the beginning of a text, whole characters only.
func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}
