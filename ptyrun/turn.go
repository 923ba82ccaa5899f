package ptyrun

import (
	"cmp"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// turn is what the runner itself knows of the current turn.
type turn struct {
	id            string    // the runner's own; "" if hooks report the turn
	text          string    // that began it; "" if a person's did
	ids           []wire.ID // of the messages in text; none: it was the first prompt
	hasPointer    bool      // text only points at them
	startRow      uint64    // rows that had scrolled when it began
	isOurs        bool      // text began it, and its end has not been reported
	isInterrupted bool      // by us
	hasWorked     bool      // the screen has shown work, or a dialog, since it was idle
	hasActed      bool      // it has shown a tool or a question
	hasRetried    bool      // it has shown that it tries again after an error
	lastAnswer    string    // the last one reported; kept from turn to turn
}

// hasHooks reports whether the program's own hooks report its turns. (opencode's start with its first session.)
func (r *runner) hasHooks() bool {
	return r.state.Run != nil && (r.state.Run.Sessions > 0 || r.state.Turn().HasSessionStart)
}

// beginTurn reports a turn that begins with a text of ours, and returns its id if that is known.
func (r *runner) beginTurn(text string, now time.Time) (id string) {
	p, previous := r.prog, r.prog.reported
	p.reported, p.reportedDetail, p.readingSince = reducer.Thinking, "", now
	if p.reading.Prompt {
		p.promptSince = now
	}
	r.turn.id, r.turn.isOurs, r.turn.text = "", true, text
	r.turn.hasWorked, r.turn.hasActed, r.turn.hasRetried = showsWork(p.reading), false, false
	if !r.hasHooks() {
		r.appendTurnStarted(text)
		source := reducer.FromScreen
		if p.reading.Activity.IsWork() {
			source = p.reading.Source
		}
		r.appendStateChange(previous, reducer.Thinking, "", source)
	} else if turn := r.state.Turn(); turn.Status == reducer.TurnBusy { // Codex accepts a text before its hook names the turn
		return turn.ID
	}
	return r.turn.id
}

func (r *runner) appendTurnStarted(prompt string) {
	r.turn.id = string(wire.NewID())
	r.appendEvent(r.turnEvent(wire.TurnStarted, r.turn.id), "prompt", wire.Clip(prompt, maxResponse))
}

// turnEvent returns an event of a turn that only the screen shows. Its thread is the run.
func (r *runner) turnEvent(kind, turn string) wire.Event {
	return wire.Event{Kind: kind, TurnID: turn}.With("transport", "pty").With("thread_id", r.Run)
}

// endTurn reports the end of a turn that only the screen shows, with its answer.
func (r *runner) endTurn(rd driver.Reading, previous reducer.Activity) {
	p, t := r.prog, &r.turn
	isTurn := t.isOurs || t.id != "" || r.state.Turn().Status == reducer.TurnBusy
	if isTurn && !r.hasHooks() && previous != reducer.Starting && p.isReady {
		r.appendTurnEnded(rd)
	}
	t.id, t.isOurs, t.isInterrupted, t.hasWorked, t.hasRetried = "", false, false, false, false
}

func (r *runner) appendTurnEnded(rd driver.Reading) {
	t, id, text := &r.turn, cmp.Or(r.turn.id, r.state.Turn().ID), r.response()
	status, failure := reducer.Completed, ""
	switch {
	case t.isInterrupted && text == t.lastAnswer: // the previous turn's
		status, text = reducer.Interrupted, ""
	case t.isInterrupted:
		status = reducer.Interrupted
	case rd.Failure != "" && !(rd.MayBeAnswer && !t.hasRetried):
		status, failure = reducer.Failed, rd.Failure
	}
	t.lastAnswer = cmp.Or(text, t.lastAnswer)
	r.appendEvent(r.turnEvent(wire.TurnCompleted, id).With("status", status), "error", failure, "response", text)
	if rd.Activity == reducer.Idle {
		r.appendEvent(r.turnEvent(wire.TurnIdle, id))
	}
}

// appendTurnCutOff reports the end of a turn that the program's exit cut off, for readers of turn events. It agrees
// with what the reducer makes of exited, and comes after that; there is no turn_idle, since the program is not idle.
func (r *runner) appendTurnCutOff(p *program) {
	e, shown := r.turnEvent(wire.TurnCompleted, r.turn.id), r.state.Turn()
	switch {
	case p.driver.LogsOwnEvents && r.stopping != nil && shown.IsOpen(): // it reports every other end itself
		e.TurnID, e.Session = shown.ID, shown.Session
		e = e.With("transport", shown.Transport).With("thread_id", shown.Thread)
	case r.turn.id == "": // or hooks report it
		return
	}
	status := reducer.Failed
	if r.stopping != nil || r.exit.Code == 0 {
		status = reducer.Interrupted
	}
	r.appendEvent(e.With("status", status))
}

const maxResponse = 64 << 10 // bytes of a prompt or an answer in an event

// response returns the answer to the turn's text, as it is on the screen and above it; "": none is seen.
func (r *runner) response() string {
	p := r.prog
	_, rows := p.screen.Size()
	scrolled := p.screen.Scrolled() - min(r.turn.startRow, p.screen.Scrolled())
	isCut := scrolled > scrollback || p.screen.Modes().Alt // where nothing is kept of what scrolls off
	seen := driver.Transcript(p.screen, rows+int(min(scrolled, scrollback)))
	return wire.ClipStart(p.driver.Response(seen, r.turn.text, isCut), maxResponse)
}
