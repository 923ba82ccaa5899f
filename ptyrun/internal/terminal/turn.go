package terminal

import (
	"cmp"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// turn is what a terminal knows of the current turn.
type turn struct {
	id            string // the runner's own; "" if hooks report the turn
	text          string // that began it; "" if a person's did
	startRow      uint64 // rows that had scrolled when it began
	isOpen        bool   // it has begun, and its end was not seen
	isOurs        bool   // text began it, and its end was not seen
	isInterrupted bool   // by us
	hasWorked     bool   // the screen has shown work, or a dialog, since it was idle
	hasActed      bool   // it has shown a tool or a question
	hasRetried    bool   // it has shown that it tries again after an error
}

// accepted reports a turn that begins with a text of ours.
func (p *Terminal) accepted(g *run.Text) (delivery.Event, string) {
	r, rd, now := p.r, &p.reading, p.r.Now()
	previous := r.State.Session().Activity
	p.detail, p.readingSince = "", now
	p.leftover = nil
	if rd.Prompt {
		p.promptSince = now
	}
	p.turn.id, p.turn.isOurs, p.turn.isOpen, p.turn.text = "", true, true, g.Words
	p.turn.hasWorked, p.turn.hasActed, p.turn.hasRetried = showsWork(*rd), false, false
	if !r.State.HasHooks() {
		p.appendTurnStarted(g.Words)
		evidence := reducer.FromScreen
		if rd.Activity.IsWork() {
			evidence = rd.Source
		}
		r.AppendChange(previous, reducer.Thinking, "", evidence)
	}
	g.Turn = p.turn.id
	if shown := r.State.Session().Turn; r.State.HasHooks() && shown.Status == reducer.TurnBusy { // Codex accepts a text before its hook names the turn
		g.Turn = shown.ID
	}
	return delivery.Receipt, ""
}

func (p *Terminal) appendTurnStarted(prompt string) {
	p.turn.id = string(wire.NewID())
	p.r.Append(p.turnEvent(wire.TurnStarted, p.turn.id), "prompt", wire.Clip(prompt, maxResponse))
}

// turnEvent returns an event of a turn that only the screen shows. Its thread is the run.
func (p *Terminal) turnEvent(kind, turn string) wire.Event {
	return wire.Event{Kind: kind, TurnID: turn}.With("transport", wire.SourcePTY).With("thread_id", p.r.ID)
}

// endTurn reports the end of a turn that only the screen shows, with its answer.
func (p *Terminal) endTurn(rd driver.Reading, hasStarted bool) {
	t, r := &p.turn, p.r
	isTurn := t.isOurs || t.id != "" || r.State.Session().Turn.Status == reducer.TurnBusy
	if isTurn && !r.State.HasHooks() && hasStarted && p.isReady {
		p.appendTurnEnded(rd)
	}
	t.id, t.isOpen, t.isOurs, t.isInterrupted, t.hasWorked, t.hasRetried = "", false, false, false, false, false
}

func (p *Terminal) appendTurnEnded(rd driver.Reading) {
	t, id, text := &p.turn, cmp.Or(p.turn.id, p.r.State.Session().Turn.ID), p.Response()
	status, failure := reducer.Completed, ""
	switch {
	case t.isInterrupted && text == p.r.LastAnswer: // the previous turn's
		status, text = reducer.Interrupted, ""
	case t.isInterrupted:
		status = reducer.Interrupted
	case rd.Failure != "" && !(rd.MayBeAnswer && !t.hasRetried):
		status, failure = reducer.Failed, rd.Failure
	}
	p.r.LastAnswer = cmp.Or(text, p.r.LastAnswer)
	p.r.Append(p.turnEvent(wire.TurnCompleted, id).With("status", status), wire.FieldError, failure, wire.FieldResponse, text)
	if rd.Activity == reducer.Idle {
		p.r.Append(p.turnEvent(wire.TurnIdle, id))
	}
}

const maxResponse = 64 << 10 // bytes of a prompt or an answer in an event

// Response returns the answer to the turn's text, as it is on the screen and above it; "": none is seen.
func (p *Terminal) Response() string {
	_, rows := p.emulator.Size()
	scrolled := p.emulator.Scrolled() - min(p.turn.startRow, p.emulator.Scrolled())
	isCut := scrolled > screen.Scrollback || p.emulator.Modes().Alt // where nothing is kept of what scrolls off
	seen := driver.Transcript(p.emulator, rows+int(min(scrolled, screen.Scrollback)))
	return wire.ClipStart(p.driver.Response(seen, p.turn.text, isCut), maxResponse)
}
