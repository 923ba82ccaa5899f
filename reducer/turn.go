package reducer

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// apply is the table of testdata/states.md: what an event about a session does to its turn. It reports whether the
// event is news: about the session as it is now, not late and not a repeat.
func (t *Turn) apply(e *event) (isNews bool) {
	switch e.kind {
	case wire.TurnStarted:
		return t.start(e)
	case wire.TurnCompleted:
		return t.complete(e)
	case wire.TurnIdle:
		return t.becomeIdle(e)

	case "message_delta":
		return t.work(e, Responding, "")
	case "thought_delta":
		return t.work(e, Thinking, "")
	case "thread_active": // Codex: it works, and waits for nothing
		return t.Word() == WordBusy || t.work(e, Thinking, "")

	case "tool_call_start":
		return t.startCall(e)
	case "tool_call_end":
		return t.endCall(e)
	case "tool_call_update": // neither its start nor its end

	case "waiting_for_input":
		return t.ask(e, waitingOf(e, Question))
	case "confirm_required":
		return t.ask(e, waitingOf(e, Permission))
	case "server_request":
		return t.ask(e, waitingOf(e, ClientTool))
	case "permission_result", "tool_result":
		if len(t.Requests) == 0 {
			return false
		}
		return t.answerID(cmp.Or(e.idOf("id"), e.idOf("request_id"))) || t.work(e, Thinking, "")
	case "state_change":
		return t.changeState(e, Activity(e.Text("new")))
	case "session_start":
		return t.startSession(e)
	default:
		e.isUnknown = true
	}
	return false
}

func (t *Turn) start(e *event) bool {
	if t.hasEnded(e.turn) || e.turn != "" && e.turn == t.ID {
		return false // late, or a repeat
	}
	if e.source == "hook" && t.Transport == "pty" { // its runner began it before there was a sign of hooks
		t.IsGenerated = true
	}
	if e.turn == "" || !t.IsOpen() || !t.matchTurn(e.turn) { // else the turn was open before it had a name
		t.beginTurn(e)
		t.setActivity(Thinking, "")
	}
	t.Thread, t.Transport = "", ""
	t.setOrigin(e)
	return true
}

// complete ends a turn and records how it ended.
func (t *Turn) complete(e *event) bool {
	if !t.matchTurn(e.turn) {
		t.rememberEnded(e.turn)
		return false
	}
	id := cmp.Or(e.turn, t.ID)
	isRecorded := t.Last != nil && t.Last.ID == id
	isIdle, isTerminal := t.Status == TurnIdle && t.ID != "", t.Status == TurnTerminal && isRecorded
	if t.isOver() || isIdle || isTerminal {
		// Its idle, its program's end or the same event came first. A runner only repeats its exited.
		if id == t.ID && (!isRecorded || t.Last.IsCutOff && e.source != "pty") {
			t.recordEnd(e, Last{Status: endStatus(e)})
		}
		return false
	}
	isNews := !t.asksOutsideTurn(e)
	t.nameTurn(id, e)
	t.setOrigin(e)
	t.recordEnd(e, Last{Status: endStatus(e)})
	t.Status = TurnTerminal
	if isNews {
		t.setActivity(Idle, "")
		if e.Text("status") == Awaiting {
			t.waitFor(e, Waiting{Kind: Question})
		}
	}
	return isNews
}

// becomeIdle is the agent's report that it waits for the next turn.
func (t *Turn) becomeIdle(e *event) bool {
	if !t.matchTurn(e.turn) {
		t.rememberEnded(e.turn)
		return false
	}
	if t.isOver() {
		return false
	}
	isNews := !t.asksOutsideTurn(e) && (t.Status != TurnIdle || !t.hasEnded(e.turn))
	t.nameTurn(e.turn, e)
	t.rememberEnded(t.ID)
	t.Status = TurnIdle
	if isNews {
		t.setOrigin(e)
		t.setActivity(Idle, "")
	}
	return isNews
}

// nameTurn names a turn of which only the end was seen.
func (t *Turn) nameTurn(id string, e *event) {
	if t.ID == "" && id != "" {
		t.ID, t.TurnSeq = id, e.seq
	}
}

// work is evidence of a turn: the current one, or one whose start was not seen.
func (t *Turn) work(e *event, a Activity, detail string) bool {
	if t.hasEnded(e.turn) || t.isOver() && e.turn == "" {
		return false // late
	}
	t.enterTurn(e)
	t.setActivity(a, detail)
	return true
}

// enterTurn makes the turn that an event names the open one. A turn that only a screen showed to be over goes on.
func (t *Turn) enterTurn(e *event) {
	isPaused := t.Status == TurnIdle && !t.IsGenerated && t.ID != "" && !t.hasEnded(t.ID)
	switch {
	case t.IsOpen() && t.matchTurn(e.turn):
	case isPaused && (e.turn == "" || e.turn == t.ID):
		t.Status = TurnBusy
	default: // its start was not seen
		t.beginTurn(e)
		t.setOrigin(e)
	}
}

func (t *Turn) startCall(e *event) bool {
	call, tool := e.idOf("tool_call_id"), wire.Clip(e.Text("tool", "tool_name", "title", "name"), maxID)
	isNewCall := call != "" && !slices.Contains(t.StartedCalls, call)
	if slices.Contains(t.EndedCalls, call) || t.hasEnded(e.turn) && !(isNewCall && t.reopenTurn(e)) {
		return false
	}
	stillAsks := t.answerByStart(e, tool, call)
	if tool == "" && t.Activity == ToolRunning {
		tool = t.Detail
	}
	isNews := stillAsks || t.work(e, ToolRunning, tool)
	t.StartedCalls = remember(t.StartedCalls, call, maxCalls)
	return isNews
}

// endCall ends a tool call. It does not open a turn that is known to be over.
func (t *Turn) endCall(e *event) (isNews bool) {
	call, tool := e.idOf("tool_call_id"), wire.Clip(e.Text("tool", "tool_name", "name"), maxID)
	isOfTurn := t.ID != "" && (e.turn == "" || e.turn == t.ID)
	if isLate := t.hasEnded(e.turn) || isOfTurn && !t.IsOpen(); !isLate {
		isNews = t.answerByEnd(tool, call) || t.work(e, Thinking, "")
	}
	t.EndedCalls = remember(t.EndedCalls, call, maxCalls)
	return isNews
}

// changeState applies what a runner saw on the screen, or what somebody reports outright.
func (t *Turn) changeState(e *event, a Activity) bool {
	if t.hasEnded(e.turn) || t.isOver() && e.turn == "" && e.session != "" {
		return false
	}
	detail, id := wire.Clip(e.Text("detail"), maxDetail), e.idOf("id")
	switch a {
	case Thinking, Responding, ToolRunning:
		if id != "" && len(t.Requests) == 0 && !t.IsOpen() {
			return false // it answers a question of a turn that is over by now
		}
		if t.answerID(id) {
			return true
		}
		if t.isOver() {
			t.setActivity(Unknown, "") // the runner sees that it goes on
		}
		return t.work(e, a, detail)
	case Confirming:
		isClaim := e.source == "pty" && e.restsOn() != FromScreen // it was not read
		return t.ask(e, Waiting{Kind: Permission, Prompt: e.Text("detail"), IsIncomplete: isClaim})
	case AwaitingInput:
		return t.ask(e, Waiting{Kind: Question, Prompt: e.Text("detail")})
	case Idle:
		if e.turn != "" && e.turn != t.ID {
			return false
		}
		t.Status = TurnIdle // a named turn may still report that it goes on
	case Exited, Error, Limited, Starting:
		t.cutOff(e, Failed)
	case Unknown:
		if t.isOver() || len(t.Requests) > 0 && id == "" {
			return false // it may still ask, and what has ended is not back
		}
		if t.answerID(id) {
			return true
		}
	default:
		return false
	}
	t.setActivity(a, detail)
	return true
}

func (t *Turn) startSession(e *event) bool {
	source := e.Text("source")
	switch {
	case source == "compact": // the session goes on
		if t.Detail == "compacting" {
			t.Detail = ""
		}
		return !t.isOver()
	case e.session != "" && (source != "resume" || e.isContinued) && (t.IsOpen() || t.HasSessionStart && !t.isOver()):
		if !t.HasSessionStart {
			t.HasSessionStart, t.StartedAt = true, e.at
		}
		return false // later than its first turn, or a repeat
	}
	if e.session != "" {
		t.StartedAt = e.at
	}
	t.cutOff(e, Interrupted)
	if e.session == "" && source != "resume" && t.isOver() { // its turns may reuse ids
		t.ID, t.Ended = "", nil
	}
	t.setOrigin(e)
	t.HasSessionStart, t.Status, t.FirstSeq = true, TurnIdle, e.seq
	t.setActivity(Idle, "")
	return true
}

// matchTurn reports whether an id means the current turn: it is empty, its own, or the first id for an unnamed turn.
func (t *Turn) matchTurn(id string) bool {
	if t.IsGenerated && t.IsOpen() && id != "" && id != t.ID && !t.hasEnded(id) {
		t.ID, t.IsGenerated = id, false
	}
	return id == "" || id == t.ID || t.ID == ""
}

// beginTurn begins the turn that an event names. An earlier one is over; how it ended is not known.
func (t *Turn) beginTurn(e *event) {
	t.rememberEnded(t.ID)
	t.ID, t.IsGenerated = cmp.Or(e.turn, "turn-"+strconv.FormatUint(e.seq, 10)), e.turn == ""
	t.Status, t.Began, t.TurnSeq = TurnBusy, e.at, e.seq
	t.StartedCalls, t.EndedCalls = nil, nil
	t.Reopened = 0
	t.setActivity(Unknown, "")
}

// reopenTurn reopens the turn that a hook names, if its end was reported as completed. Hooks run in parallel, and any
// of them may keep the program from stopping: what begins after that belongs to the same turn.
func (t *Turn) reopenTurn(e *event) bool {
	last := t.End()
	isOfTurn := e.source == "hook" && e.turn != "" && e.turn == t.ID
	if !isOfTurn || last == nil || last.Status != Completed || t.isOver() {
		return false
	}
	t.Ended = forget(t.Ended, t.ID)
	if last.DurationMS > 0 {
		t.Began = last.At.Add(-last.Duration())
	}
	t.Last, t.Status = nil, TurnBusy
	t.Reopened++
	return true
}

// cutOff ends the current turn without an event of its own.
func (t *Turn) cutOff(e *event, status string) {
	if t.IsOpen() {
		t.recordEnd(e, Last{Status: status, IsCutOff: true})
		t.Status = TurnTerminal
	}
	t.rememberEnded(t.ID)
}

// recordEnd records how the turn ended, which l begins to say.
func (t *Turn) recordEnd(e *event, l Last) {
	l.ID, l.At = t.ID, e.at
	hasBegun := !t.Began.IsZero()
	if hasBegun && t.Word() == WordIdle && t.Since.After(t.Began) {
		l.At = t.Since // the screen showed the end before this event
	}
	if hasBegun && l.At.After(t.Began) {
		l.DurationMS = l.At.Sub(t.Began).Milliseconds()
	} else if t.Last != nil && t.Last.ID == t.ID {
		l.DurationMS = t.Last.DurationMS
	}
	if l.Status == Failed && !l.IsCutOff {
		l.Error = e.Text("error", "error_summary", "summary")
		if l.Error == "" && hasBegun && !e.errorAt.Before(t.Began) {
			l.Error = e.lastError
		}
		l.Error = wire.Clip(l.Error, maxDetail)
	}
	t.Last, t.Began = &l, time.Time{}
	t.rememberEnded(t.ID)
}

func endStatus(e *event) string {
	switch status := e.Text("status", "stopReason"); status {
	case Interrupted, Cancelled, Awaiting:
		return status
	case "canceled":
		return Cancelled
	case Failed, "error", "inProgress", "in_progress":
		return Failed
	}
	return Completed
}

func (t *Turn) hasEnded(id string) bool { return slices.Contains(t.Ended, id) }
func (t *Turn) rememberEnded(id string) { t.Ended = remember(t.Ended, id, maxEnded) }

// asksOutsideTurn reports whether a question is outside any turn, so that the end of a named turn does not answer it.
func (t *Turn) asksOutsideTurn(e *event) bool {
	return len(t.Requests) > 0 && !t.IsOpen() && e.turn != ""
}

// setActivity sets what the program does now, and with that answers what it asked.
func (t *Turn) setActivity(a Activity, detail string) {
	t.Activity, t.Detail, t.Requests, t.IsReplaced = a, detail, nil, false
}

// setOrigin takes over the thread and the transport that an event names.
func (t *Turn) setOrigin(e *event) {
	t.Thread = cmp.Or(shortID(e.Text("thread_id")), t.Thread)
	t.Transport = cmp.Or(wire.Clip(e.Text("transport"), maxID), t.Transport)
}
