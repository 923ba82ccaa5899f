package reducer

import (
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// take is the table of docs/states.md: what an event about a session does to
// its turn. News is what was about the session as it is now; what is late or
// was said before is none. Known is whether the kind is one of these.
func (t *Turn) take(h *happening) (news, known bool) {
	switch h.Kind {
	case wire.TurnStarted:
		return t.started(h), true
	case wire.TurnCompleted, "turn_complete":
		return t.completed(h), true
	case wire.TurnIdle:
		return t.idles(h), true

	case "message_delta", "agent_message_chunk":
		return t.works(h, Responding, ""), true
	case "agent_thought_chunk":
		return t.works(h, Thinking, ""), true
	case "thread_active": // of Codex: and it waits for nothing
		if t.Word() == WordBusy && t.Status == TurnBusy && t.is(h.turn) {
			return true, true
		}
		return t.works(h, Thinking, ""), true

	case "tool_call_start":
		return t.calls(h), true
	case "tool_call_end":
		return t.returns(h), true
	case "tool_call", "tool_call_update":
		switch h.body().Text("status") {
		case "completed", "failed":
			return t.returns(h), true
		case "in_progress":
			return t.calls(h), true
		}
		return h.Kind == "tool_call" && t.calls(h), true

	case "waiting_for_input":
		return t.asks(h, question(h, Question)), true
	case "confirm_required":
		return t.asks(h, question(h, Permission)), true
	case "state_change":
		return t.changes(h, Activity(h.body().Text("new"))), true
	case "state_update": // of ACP's version 2
		return t.updates(h), true
	case "session_start":
		return t.begins(h), true
	}
	return false, false
}

// started is the beginning of a turn.
func (t *Turn) started(h *happening) bool {
	switch {
	case t.over(h.turn), h.turn != "" && h.turn == t.ID:
		return false // late, or again
	case h.turn != "" && t.Status == TurnBusy && t.is(h.turn): // it was seen before it had a name
		t.runsAt(h, true)
		return true
	}
	t.open(h)
	t.runsAt(h, true)
	t.doing(Thinking, "")
	return true
}

// completed is the end of a turn, with how it ended.
func (t *Turn) completed(h *happening) bool {
	if !t.is(h.turn) {
		t.end(h.turn)
		return false
	}
	id := or(h.turn, t.ID)
	known := t.Last != nil && t.Last.ID == id
	if t.ended() || t.Status == TurnIdle && t.ID != "" || t.Status == TurnTerminal && known {
		// Its idle came first, or its program's end, or it is said again.
		if t.end(id); id == t.ID && (!known || t.Last.Cut) {
			t.record(h, outcome(h), false)
			t.Soft = t.Soft && t.Last.Status == Completed
		}
		return false
	}
	outside := t.outside(h)
	t.ID = id
	t.runsAt(h, true)
	t.record(h, outcome(h), false)
	t.Status = TurnTerminal
	t.Soft = h.Source == "hook" && t.Last.Status == Completed
	if outside {
		return false
	}
	t.doing(Idle, "")
	if h.body().Text("status") == "awaiting_input" {
		t.wait(h, Waiting{Kind: Question})
	}
	return true
}

// outside reports whether something was asked outside of any turn, which the
// end of one is no answer to; who names none says how it is now.
func (t *Turn) outside(h *happening) bool {
	return t.Waiting != nil && t.Status != TurnBusy && h.turn != ""
}

// idles is the agent's word that it waits for the next turn.
func (t *Turn) idles(h *happening) bool {
	switch {
	case !t.is(h.turn):
		t.end(h.turn)
		return false
	case t.ended():
		t.end(t.ID)
		return false
	case t.outside(h), t.Status == TurnIdle && t.over(h.turn):
		t.ID = h.turn
		t.close()
		return false
	}
	if t.Status == TurnBusy {
		t.Soft = h.Source == "hook"
	}
	t.ID = or(h.turn, t.ID)
	t.runsAt(h, true)
	t.close()
	t.doing(Idle, "")
	return true
}

// works is evidence that a turn is under way: the current one, or one whose
// start was not seen.
func (t *Turn) works(h *happening, a Activity, detail string) bool {
	switch {
	case t.Status == TurnBusy && h.turn == t.ID:
	case t.over(h.turn), t.ended() && h.turn == "":
		return false // late
	case t.Status == TurnBusy && t.is(h.turn):
	case t.paused() && (h.turn == "" || h.turn == t.ID):
		t.Status = TurnBusy
	default:
		t.open(h)
		t.runsAt(h, false)
	}
	t.doing(a, detail)
	return true
}

// changes is what a runner saw on the screen, or what somebody says outright.
func (t *Turn) changes(h *happening, a Activity) bool {
	detail := clip(h.body().Text("detail"), maxDetail)
	if t.over(h.turn) || t.ended() && h.turn == "" && h.session != "" {
		return false
	}
	switch a {
	case Thinking, Responding, ToolRunning:
		if asks, other := t.replied(h.ident("id")); asks {
			return other
		}
		if t.ended() {
			t.Activity, t.Next = Unknown, false // the runner has seen it
		}
		return t.works(h, a, detail)
	case Idle:
		if h.turn != "" && h.turn != t.ID {
			return false
		}
		if t.Own {
			t.close()
		}
		t.Status = TurnIdle // what has a name may yet say that it goes on
		t.doing(Idle, detail)
	case Confirming, AwaitingInput:
		kind := Permission
		if a == AwaitingInput {
			kind = Question
		}
		return t.asks(h, Waiting{Kind: kind, Prompt: h.body().Text("detail")})
	case Exited, Error, Starting:
		t.cut(h, Failed)
		t.doing(a, detail)
	case Unknown: // what asks may still ask, what is gone is not there again
		if t.Waiting != nil || t.ended() {
			return false
		}
		t.doing(a, detail)
	default:
		return false
	}
	return true
}

// updates is ACP's word, in its second version, for what all the others say.
func (t *Turn) updates(h *happening) bool {
	switch h.body().Text("state") {
	case "running":
		return t.works(h, Thinking, "")
	case "requires_action":
		return t.asks(h, Waiting{Kind: Permission})
	case "idle":
		t.completed(h)
		return t.idles(h)
	}
	return false
}

// begins is the beginning of a session's life.
func (t *Turn) begins(h *happening) bool {
	source := h.body().Text("source")
	again := t.Begun && !t.ended()
	switch {
	case source == "compact": // in the middle of its life
		if t.ended() {
			return false
		}
		if t.Detail == "compacting" {
			t.Detail = ""
		}
		t.Begun = true
		return true
	case h.session != "" && source != "resume" && (again || t.Status == TurnBusy):
		t.Begun = true
		return false // again, or later than its first turn
	}
	t.cut(h, Interrupted)
	t.runsAt(h, false)
	t.Begun, t.Status, t.Came = true, TurnIdle, h.seq
	t.doing(Idle, "")
	return true
}

// is reports whether a turn's id means the current turn: it is empty, or that
// one's, or no turn is known, or it is the first name of a turn that had none.
func (t *Turn) is(id string) bool {
	if id == "" || id == t.ID || t.ID == "" {
		return true
	}
	if t.Own && t.Status == TurnBusy && !t.over(id) {
		t.ID, t.Own = id, false
		return true
	}
	return false
}

// open begins a turn. One that was open, or was seen to stop, is over: how is
// not known.
func (t *Turn) open(h *happening) {
	if t.ID != h.turn {
		t.end(t.ID)
	}
	t.ID, t.Own = h.turn, h.turn == ""
	if t.Own {
		t.ID = "turn-" + strconv.FormatUint(h.seq, 10)
	}
	t.Status, t.Began = TurnBusy, h.at
	t.Calls, t.Soft, t.Anew = nil, false, 0
	if t.ended() {
		t.Begun = false
	}
}

// over reports whether a turn is known to have ended.
func (t *Turn) over(id string) bool { return id != "" && t.Over.has(mark(id)) }

// end notes that a turn is over.
func (t *Turn) end(id string) {
	if id == "" {
		return
	}
	if h := mark(id); !t.Over.has(h) {
		t.Over.add(h, keptOver)
	}
}

// close makes the current turn one that is over and that no event can open
// again.
func (t *Turn) close() {
	t.end(t.ID)
	t.Status = TurnIdle
	if t.Last != nil && t.Last.ID == t.ID {
		t.Began = time.Time{}
	}
}

// paused reports whether a turn with a name was seen to stop, which is all that
// is known of its end.
func (t *Turn) paused() bool { return t.Status == TurnIdle && !t.Own && t.ID != "" && !t.over(t.ID) }

// cut ends an open turn with its program.
func (t *Turn) cut(h *happening, status string) {
	if t.Status == TurnBusy {
		t.record(h, status, true)
		t.Status = TurnTerminal
	}
	t.end(t.ID)
}

// record notes how the current turn ended.
func (t *Turn) record(h *happening, status string, cut bool) {
	l := &Last{ID: t.ID, Status: status, At: h.at, Cut: cut}
	if !t.Began.IsZero() && t.Word() == WordIdle && t.Since.After(t.Began) {
		l.At = t.Since // it was seen to be over before it was said
	}
	if !t.Began.IsZero() && l.At.After(t.Began) {
		l.Duration = l.At.Sub(t.Began).Truncate(time.Millisecond)
	} else if old := t.Last; old != nil && old.ID == t.ID {
		l.Duration = old.Duration
	}
	if status == Failed && !cut {
		l.Why = clip(h.body().Text("error", "error_summary", "summary"), maxWhy)
		if l.Why == "" && !t.Began.IsZero() && !h.since.Before(t.Began) {
			l.Why = clip(h.trouble, maxWhy)
		}
	}
	t.Last = l
	t.end(t.ID)
	t.Began = time.Time{}
}

// outcome is how a completion says that the turn ended.
func outcome(h *happening) string {
	switch h.body().Text("status", "stopReason") {
	case "interrupted", "cancelled", "canceled":
		return Interrupted
	case "failed", "error", "inProgress", "in_progress":
		return Failed
	}
	return Completed
}

// doing says what the program does now. What it waited for is past.
func (t *Turn) doing(a Activity, detail string) {
	t.Activity, t.Detail, t.Waiting, t.Behind, t.Next = a, detail, nil, nil, false
}

// runsAt notes where the turn runs. What was known gives way to what is said
// about the turn itself.
func (t *Turn) runsAt(h *happening, itself bool) {
	if !itself && t.Thread != "" && t.Transport != "" || !h.mayName("thread", "transport", "method") {
		return
	}
	b := h.body()
	if s := b.Text("thread_id"); s != "" && (itself || t.Thread == "") {
		t.Thread = short(s)
	}
	if s := b.Text("transport"); s != "" && (itself || t.Transport == "") {
		t.Transport = clip(s, maxTransport)
	}
}
