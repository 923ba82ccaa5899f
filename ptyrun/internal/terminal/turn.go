package terminal

import (
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// turn is what a terminal knows of a turn that a text of ours has begun. Its end is seen, and what was said in it is not.
type turn struct {
	id            string // the runner's own; "" if the program tells its turns
	text          string
	isOurs        bool // text began it, and its end was not seen
	isInterrupted bool // by us
	hasWorked     bool // the screen has shown work, or a dialog, since it was idle
	hasActed      bool // it has asked something, or told of a tool or an answer
}

// accepted reports a turn that begins with a text of ours.
func (p *Terminal) accepted(g *run.Text) (delivery.Event, string) {
	r := p.r
	previous := r.State.Session().Activity
	p.detail, p.readingSince, p.leftover = "", r.Now(), nil
	if p.reading.Prompt {
		p.promptSince = r.Now()
	}
	p.turn = turn{text: g.Words, isOurs: true, hasWorked: showsWork(p.reading)}
	if shown := r.State.Session().Turn; r.State.Tells() {
		if shown.Status == reducer.TurnBusy { // Codex accepts a text before its hook names the turn
			g.Turn = shown.ID
		}
		return delivery.Receipt, ""
	}
	p.turn.id = string(wire.NewID())
	r.Append(p.turnEvent(wire.TurnStarted), "prompt", wire.Clip(g.Words, maxPrompt))
	r.AppendChange(previous, reducer.Thinking, "", reducer.FromScreen)
	g.Turn = p.turn.id
	return delivery.Receipt, ""
}

const maxPrompt = 64 << 10 // bytes of a prompt in an event

// turnEvent returns an event of a turn that a text of ours has begun. Its thread is the run.
func (p *Terminal) turnEvent(kind string) wire.Event {
	return wire.Event{Kind: kind, TurnID: p.turn.id}.With("transport", wire.SourcePTY).With("thread_id", p.r.ID)
}

// endTurn reports the end of such a turn.
func (p *Terminal) endTurn() {
	if p.turn.id != "" {
		status := reducer.Completed
		if p.turn.isInterrupted {
			status = reducer.Interrupted
		}
		p.r.Append(p.turnEvent(wire.TurnCompleted).With("status", status))
		p.r.Append(p.turnEvent(wire.TurnIdle))
	}
	p.turn = turn{}
}
