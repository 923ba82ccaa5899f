package reducer

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// apply is the table of testdata/states.md: what an event about a session does to its turn. It reports
// whether that is news: about the session as it is now, neither late nor said before.
func (t *Turn) apply(e *event) (isNews bool) {
	switch e.kind {
	case wire.TurnStarted:
		return t.start(e)
	case wire.TurnCompleted, "turn_complete":
		return t.complete(e)
	case wire.TurnIdle:
		return t.becomeIdle(e)

	case "message_delta", "agent_message_chunk":
		return t.work(e, Responding, "")
	case "agent_thought_chunk":
		return t.work(e, Thinking, "")
	case "thread_active": // Codex: it works, and waits for nothing
		isSaid := t.IsOpen() && t.Word() == WordBusy && t.matchTurn(e.turn)
		return isSaid || t.work(e, Thinking, "")

	case "tool_call_start":
		return t.startCall(e)
	case "tool_call_end":
		return t.endCall(e)
	case "tool_call", "tool_call_update":
		switch status := e.Text("status"); {
		case status == "completed" || status == "failed":
			return t.endCall(e)
		case status == "in_progress" || e.kind == "tool_call":
			return t.startCall(e)
		}

	case "waiting_for_input":
		return t.ask(e, waitingOf(e, Question))
	case "confirm_required":
		return t.ask(e, waitingOf(e, Permission))
	case "server_request":
		return t.ask(e, waitingOf(e, ClientTool))
	case "permission_result", "tool_result":
		if stillAsks, isNews := t.answerID(cmp.Or(e.idOf("id"), e.idOf("request_id"))); stillAsks || len(t.Requests) == 0 {
			return isNews
		}
		return t.work(e, Thinking, "")
	case "state_change":
		return t.changeState(e, Activity(e.Text("new")))
	case "state_update": // ACP's second version says all of the above with it
		switch e.Text("state") {
		case "running":
			return t.work(e, Thinking, "")
		case "requires_action":
			return t.ask(e, Waiting{Kind: Permission})
		case "idle":
			t.complete(e)
			return t.becomeIdle(e)
		}
	case "session_start":
		return t.startSession(e)
	default:
		e.isUnknown = true
	}
	return false
}

func (t *Turn) start(e *event) bool {
	if t.hasEnded(e.turn) || e.turn != "" && e.turn == t.ID {
		return false // late, or said before
	}
	if e.turn == "" || !t.IsOpen() || !t.matchTurn(e.turn) { // else it was seen before it had a name
		t.beginTurn(e)
		t.setActivity(Thinking, "")
	}
	t.Thread, t.Transport = "", ""
	t.noteOrigin(e)
	return true
}

// complete is turn_completed: the end of a turn, and how it ended.
func (t *Turn) complete(e *event) bool {
	if !t.matchTurn(e.turn) {
		t.noteEnded(e.turn)
		return false
	}
	id := cmp.Or(e.turn, t.ID)
	isSaid := t.Last != nil && t.Last.ID == id
	if t.isOver() || t.Status == TurnIdle && t.ID != "" || t.Status == TurnTerminal && isSaid {
		// Its idle or its program's end came first, or it was said before. A runner only repeats what its exited said.
		if id == t.ID && (!isSaid || t.Last.IsCutOff && e.source != "pty") {
			t.recordEnd(e, endStatus(e), false)
			t.EndIsTentative = t.EndIsTentative && t.Last.Status == Completed
		}
		return false
	}
	isNews := !t.asksOutsideTurn(e)
	if t.ID == "" && id != "" { // only the end of the turn is seen
		t.ID, t.TurnSeq = id, e.seq
	}
	t.noteOrigin(e)
	t.recordEnd(e, endStatus(e), false)
	t.Status, t.EndIsTentative = TurnTerminal, e.source == "hook" && t.Last.Status == Completed
	if isNews {
		t.setActivity(Idle, "")
		if e.Text("status") == "awaiting_input" {
			t.waitFor(e, Waiting{Kind: Question})
		}
	}
	return isNews
}

// becomeIdle is the agent's word that it waits for the next turn.
func (t *Turn) becomeIdle(e *event) bool {
	if !t.matchTurn(e.turn) {
		t.noteEnded(e.turn)
		return false
	}
	if t.isOver() {
		return false
	}
	isNews := !t.asksOutsideTurn(e) && (t.Status != TurnIdle || !t.hasEnded(e.turn))
	if t.ID == "" && e.turn != "" {
		t.ID, t.TurnSeq = e.turn, e.seq
	}
	t.noteEnded(t.ID)
	t.Status = TurnIdle
	if isNews {
		t.noteOrigin(e)
		t.setActivity(Idle, "")
	}
	return isNews
}

// work is evidence that a turn is under way: the current one, or one whose start was not seen.
func (t *Turn) work(e *event, a Activity, detail string) bool {
	if t.hasEnded(e.turn) || t.isOver() && e.turn == "" {
		return false // late
	}
	t.enterTurn(e)
	t.setActivity(a, detail)
	return true
}

// enterTurn makes the turn that an event names the open one. A turn that was only seen to stop goes on.
func (t *Turn) enterTurn(e *event) {
	isPaused := t.Status == TurnIdle && !t.IsGenerated && t.ID != "" && !t.hasEnded(t.ID)
	switch {
	case t.IsOpen() && t.matchTurn(e.turn):
	case isPaused && (e.turn == "" || e.turn == t.ID):
		t.Status = TurnBusy
	default: // its start was not seen
		t.beginTurn(e)
		t.noteOrigin(e)
	}
}

func (t *Turn) startCall(e *event) bool {
	call, tool := e.idOf("tool_call_id"), wire.Clip(e.Text("tool", "tool_name", "title", "name"), maxID)
	isNewCall := call != "" && !slices.Contains(t.StartedCalls, call)
	if slices.Contains(t.EndedCalls, call) || t.hasEnded(e.turn) && !(isNewCall && t.reopenTurn(e)) {
		return false
	}
	stillAsks, isNews := t.answerCall(e, tool, call, true)
	if tool == "" && t.Activity == ToolRunning {
		tool = t.Detail
	}
	if !stillAsks {
		isNews = t.work(e, ToolRunning, tool)
	}
	t.StartedCalls = remember(t.StartedCalls, call, maxCalls)
	return isNews
}

// endCall is the end of a tool call. It is no evidence that a turn goes on which was seen to be over.
func (t *Turn) endCall(e *event) (isNews bool) {
	call, tool := e.idOf("tool_call_id"), wire.Clip(e.Text("tool", "tool_name", "name"), maxID)
	isOfTurn := t.ID != "" && (e.turn == "" || e.turn == t.ID)
	if isLate := t.hasEnded(e.turn) || isOfTurn && !t.IsOpen(); !isLate {
		stillAsks := false
		if stillAsks, isNews = t.answerCall(e, tool, call, false); !stillAsks {
			isNews = t.work(e, Thinking, "")
		}
	}
	t.EndedCalls = remember(t.EndedCalls, call, maxCalls)
	return isNews
}

// changeState is what a runner saw on the screen, or what somebody says outright.
func (t *Turn) changeState(e *event, a Activity) bool {
	if t.hasEnded(e.turn) || t.isOver() && e.turn == "" && e.session != "" {
		return false
	}
	detail := wire.Clip(e.Text("detail"), maxDetail)
	switch a {
	case Thinking, Responding, ToolRunning:
		if e.idOf("id") != "" && len(t.Requests) == 0 && !t.IsOpen() {
			return false // the answer to what was asked in a turn that is over by now
		}
		if stillAsks, isNews := t.answerID(e.idOf("id")); stillAsks {
			return isNews
		}
		if t.isOver() {
			t.setActivity(Unknown, "") // the runner sees it
		}
		return t.work(e, a, detail)
	case Confirming:
		return t.ask(e, Waiting{Kind: Permission, Prompt: e.Text("detail")})
	case AwaitingInput:
		return t.ask(e, Waiting{Kind: Question, Prompt: e.Text("detail")})
	case Idle:
		if e.turn != "" && e.turn != t.ID {
			return false
		}
		t.Status = TurnIdle // a turn with a name may still say that it goes on
	case Exited, Error, Starting:
		t.cutOff(e, Failed)
	case Unknown:
		id := e.idOf("id")
		if t.isOver() || len(t.Requests) > 0 && id == "" {
			return false // what asks may still ask, and what is gone is not back
		}
		if stillAsks, isNews := t.answerID(id); stillAsks {
			return isNews
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
	case source == "compact": // in the middle of its life
		if t.Detail == "compacting" {
			t.Detail = ""
		}
		return !t.isOver()
	case e.session != "" && source != "resume" && (t.HasSessionStart && !t.isOver() || t.IsOpen()):
		t.HasSessionStart = true
		return false // said before, or later than its first turn
	}
	t.cutOff(e, Interrupted)
	if e.session == "" && source != "resume" && t.isOver() { // its turns may have the same ids again
		t.ID, t.Ended = "", nil
	}
	t.noteOrigin(e)
	t.HasSessionStart, t.Status, t.FirstSeq = true, TurnIdle, e.seq
	t.setActivity(Idle, "")
	return true
}

// matchTurn reports whether a turn's id means the current turn: it is empty or that turn's, or no turn
// is known. An open turn without a name takes the first one that is heard.
func (t *Turn) matchTurn(id string) bool {
	if t.IsGenerated && t.IsOpen() && id != "" && id != t.ID && !t.hasEnded(id) {
		t.ID, t.IsGenerated = id, false
	}
	return id == "" || id == t.ID || t.ID == ""
}

// beginTurn begins the turn that an event names. An earlier one that was open, or was seen to stop, is
// over; how it ended is not known.
func (t *Turn) beginTurn(e *event) {
	t.noteEnded(t.ID)
	t.ID, t.IsGenerated = cmp.Or(e.turn, "turn-"+strconv.FormatUint(e.seq, 10)), e.turn == ""
	t.Status, t.Began, t.TurnSeq = TurnBusy, e.at, e.seq
	t.StartedCalls, t.EndedCalls = nil, nil
	t.EndIsTentative, t.Reopened = false, 0
	t.setActivity(Unknown, "")
}

// reopenTurn opens again the turn that an event names, if all that is known of its end is what a hook
// said. Hooks of one moment run beside each other, and any of them may keep the program from stopping:
// what begins after that is of the same turn.
func (t *Turn) reopenTurn(e *event) bool {
	if !t.EndIsTentative || e.source != "hook" || e.turn == "" || e.turn != t.ID || t.IsOpen() || t.isOver() {
		return false
	}
	t.Ended = forget(t.Ended, t.ID)
	if l := t.Last; l != nil && l.ID == t.ID {
		if l.DurationMS > 0 {
			t.Began = l.At.Add(-l.Duration())
		}
		t.Last = nil
	}
	t.Status, t.EndIsTentative = TurnBusy, false
	t.Reopened++
	return true
}

func (t *Turn) cutOff(e *event, status string) {
	if t.IsOpen() {
		t.recordEnd(e, status, true)
		t.Status = TurnTerminal
	}
	t.noteEnded(t.ID)
}

func (t *Turn) recordEnd(e *event, status string, isCutOff bool) {
	l := &Last{ID: t.ID, Status: status, At: e.at, IsCutOff: isCutOff}
	hasBegun := !t.Began.IsZero()
	if hasBegun && t.Word() == WordIdle && t.Since.After(t.Began) {
		l.At = t.Since // it was seen to be over before this was said
	}
	if hasBegun && l.At.After(t.Began) {
		l.DurationMS = l.At.Sub(t.Began).Milliseconds()
	} else if t.Last != nil && t.Last.ID == t.ID {
		l.DurationMS = t.Last.DurationMS
	}
	if status == Failed && !isCutOff {
		l.Error = e.Text("error", "error_summary", "summary")
		if l.Error == "" && hasBegun && !e.errorAt.Before(t.Began) {
			l.Error = e.lastError
		}
		l.Error = wire.Clip(l.Error, maxDetail)
	}
	t.Last, t.Began = l, time.Time{}
	t.noteEnded(t.ID)
}

func endStatus(e *event) string {
	switch e.Text("status", "stopReason") {
	case "interrupted":
		return Interrupted
	case "cancelled", "canceled":
		return Cancelled
	case Awaiting:
		return Awaiting
	case "failed", "error", "inProgress", "in_progress":
		return Failed
	}
	return Completed
}

func (t *Turn) hasEnded(id string) bool { return slices.Contains(t.Ended, id) }
func (t *Turn) noteEnded(id string)     { t.Ended = remember(t.Ended, id, maxEnded) }

// asksOutsideTurn reports whether something is asked outside of any turn. The end of a turn that an
// event names is no answer to that; an event that names none says how it is now.
func (t *Turn) asksOutsideTurn(e *event) bool {
	return len(t.Requests) > 0 && !t.IsOpen() && e.turn != ""
}

// setActivity says what the program does now. What it waited for is past.
func (t *Turn) setActivity(a Activity, detail string) {
	t.Activity, t.Detail, t.Requests, t.IsReplaced = a, detail, nil, false
}

// noteOrigin notes what an event about the turn says of its thread and its transport.
func (t *Turn) noteOrigin(e *event) {
	t.Thread = cmp.Or(shortID(e.Text("thread_id")), t.Thread)
	t.Transport = cmp.Or(wire.Clip(e.Text("transport"), maxID), t.Transport)
}
