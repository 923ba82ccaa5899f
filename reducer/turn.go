package reducer

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Turn is what an agent does between two texts that it is given. The zero value is a turn that nobody has heard of.
type Turn struct {
	ID          string     `json:"turn_id,omitempty"`
	IsGenerated bool       `json:"id_is_generated,omitempty"` // the id is ours: no event has named the turn
	Status      TurnStatus `json:"turn_status"`
	Thread      string     `json:"thread_id,omitempty"` // survives idle
	Transport   string     `json:"transport,omitempty"`
	Began       time.Time  `json:"began,omitzero"`     // zero once its end is recorded
	Seq         uint64     `json:"seq,omitempty"`      // its first event; kept when the turn is named
	Reopened    int        `json:"reopened,omitempty"` // how often it went on after its end
}

// IsOpen reports whether the turn goes on.
func (t *Turn) IsOpen() bool { return t.Status == TurnBusy }

// Last is how the last turn ended.
type Last struct {
	ID         string    `json:"turn_id,omitempty"`
	Status     string    `json:"status"`
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms,omitempty"` // 0: its start was not seen
	Error      string    `json:"error,omitempty"`
	IsCutOff   bool      `json:"cut,omitempty"`         // it ended with its program; no event says how
	WasStopped bool      `json:"was_stopped,omitempty"` // its program was stopped on request
	Background int       `json:"background,omitempty"`  // how many pieces of its work went on when it ended
}

// Duration returns how long the turn took, in whole milliseconds; 0 if that is not known.
func (l *Last) Duration() time.Duration { return time.Duration(l.DurationMS) * time.Millisecond }

// End returns how the current turn ended; nil while it goes on, and if no event said so.
func (ses *Session) End() *Last {
	if ses.Turn.IsOpen() || ses.Last == nil || ses.Last.ID != ses.Turn.ID {
		return nil
	}
	return ses.Last
}

// apply is the table of testdata/states.md: what an event about a session does to its turn. It reports whether the
// event is news: about the session as it is now, not late and not a repeat.
func (ses *Session) apply(e *event) (isNews bool) {
	switch e.kind {
	case wire.TurnStarted:
		return ses.start(e)
	case wire.TurnCompleted:
		return ses.complete(e)
	case wire.TurnIdle:
		return ses.becomeIdle(e)

	case wire.MessageDelta:
		return ses.work(e, Responding, "")
	case wire.ThoughtDelta:
		return ses.work(e, Thinking, "")
	case wire.ThreadActive: // Codex: it works, and waits for nothing
		return ses.Word() == WordBusy || ses.work(e, Thinking, "")

	case wire.ToolCallStart:
		return ses.startCall(e)
	case wire.ToolCallEnd:
		return ses.endCall(e)
	case wire.ToolCallUpdate: // neither its start nor its end

	case wire.WaitingForInput:
		w := waitingOf(e, Question)
		w.IsOnChannel = e.isOnChannel()
		return ses.ask(e, w)
	case wire.ConfirmRequired:
		return ses.ask(e, waitingOf(e, Permission))
	case wire.ServerRequest:
		return ses.ask(e, waitingOf(e, ClientTool))
	case wire.PermissionResult, wire.ToolResult:
		if len(ses.Requests) == 0 {
			return false
		}
		return ses.answerID(cmp.Or(e.idOf("request_id"), e.idOf("id"))) || ses.work(e, Thinking, "")
	case wire.StateChange:
		return ses.changeState(e, Activity(e.Text(wire.FieldNew)))
	case wire.SessionStart:
		return ses.startSession(e)
	default:
		e.isUnknown = true
	}
	return false
}

func (ses *Session) start(e *event) bool {
	if ses.hasEnded(e.turn) || e.turn != "" && e.turn == ses.Turn.ID {
		return false // late, or a repeat
	}
	if e.restsOn() == FromScreen && ses.Source == fromHook && ses.Turn.IsOpen() && !ses.isRunners() {
		return false // a hook was faster, and has told of it
	}
	if e.source == wire.SourceHook && ses.isRunners() {
		ses.Turn.IsGenerated = true
	}
	if e.turn != "" && ses.Turn.IsOpen() && ses.Turn.ID == e.idOf("joins") {
		ses.Turn.IsGenerated = true // it goes on under the new name
	}
	if e.turn == "" || !ses.Turn.IsOpen() || !ses.matchTurn(e.turn) { // else the turn was open before it had a name
		ses.beginTurn(e)
		ses.setActivity(Thinking, "")
	}
	ses.Turn.Thread, ses.Turn.Transport = "", ""
	ses.setOrigin(e)
	return true
}

// isRunners reports whether the runner has begun the turn, before there was a sign of hooks.
func (ses *Session) isRunners() bool { return ses.Turn.Transport == "pty" }

// complete ends a turn and records how it ended.
func (ses *Session) complete(e *event) bool {
	if !ses.matchTurn(e.turn) {
		ses.rememberEnded(e.turn)
		return false
	}
	id := cmp.Or(e.turn, ses.Turn.ID)
	isRecorded := ses.Last != nil && ses.Last.ID == id
	isIdle, isTerminal := ses.Turn.Status == TurnIdle && ses.Turn.ID != "", ses.Turn.Status == TurnTerminal && isRecorded
	if ses.isOver() || isIdle || isTerminal {
		// Its idle, its program's end or the same event came first. A runner only repeats its exited.
		if id == ses.Turn.ID && (!isRecorded || ses.Last.IsCutOff && e.source != wire.SourcePTY) {
			ses.recordEnd(e, Last{Status: endStatus(e)})
		}
		return false
	}
	isNews := !ses.asksOutsideTurn(e)
	ses.nameTurn(id, e)
	ses.setOrigin(e)
	background, _ := e.Uint("background")
	ses.recordEnd(e, Last{Status: endStatus(e), Background: int(min(background, maxBackground))})
	ses.Turn.Status = TurnTerminal
	if isNews {
		ses.setActivity(Idle, "")
		if e.Text(wire.FieldStatus) == Awaiting {
			ses.waitFor(e, Waiting{Kind: Question})
		}
	}
	return isNews
}

// becomeIdle is the agent's report that it waits for the next turn.
func (ses *Session) becomeIdle(e *event) bool {
	if !ses.matchTurn(e.turn) {
		ses.rememberEnded(e.turn)
		return false
	}
	if ses.isOver() {
		return false
	}
	isNews := !ses.asksOutsideTurn(e) && (ses.Turn.Status != TurnIdle || !ses.hasEnded(e.turn))
	ses.nameTurn(e.turn, e)
	ses.rememberEnded(ses.Turn.ID)
	ses.Turn.Status = TurnIdle
	if isNews {
		ses.setOrigin(e)
		ses.setActivity(Idle, "")
	}
	return isNews
}

// nameTurn names a turn of which only the end was seen.
func (ses *Session) nameTurn(id string, e *event) {
	if ses.Turn.ID == "" && id != "" {
		ses.Turn.ID, ses.Turn.Seq = id, e.seq
	}
}

// work is evidence of a turn: the current one, or one whose start was not seen.
func (ses *Session) work(e *event, a Activity, detail string) bool {
	if ses.hasEnded(e.turn) || ses.isOver() && e.turn == "" {
		return false // late
	}
	ses.enterTurn(e)
	ses.setActivity(a, detail)
	return true
}

// enterTurn makes the turn that an event names the open one. A turn that only a screen showed to be over goes on.
func (ses *Session) enterTurn(e *event) {
	isPaused := ses.Turn.Status == TurnIdle && !ses.Turn.IsGenerated && ses.Turn.ID != "" && !ses.hasEnded(ses.Turn.ID)
	switch {
	case ses.Turn.IsOpen() && ses.matchTurn(e.turn):
	case isPaused && (e.turn == "" || e.turn == ses.Turn.ID):
		ses.Turn.Status = TurnBusy
	default: // its start was not seen
		ses.beginTurn(e)
		ses.setOrigin(e)
	}
}

func (ses *Session) startCall(e *event) bool {
	call, tool := e.idOf("tool_call_id"), wire.Clip(e.Text("tool", "tool_name", "title", "name"), maxID)
	isNewCall := call != "" && !slices.Contains(ses.Calls, call)
	if slices.Contains(ses.EndedCalls, call) || ses.hasEnded(e.turn) && !(isNewCall && ses.reopenTurn(e)) {
		return false
	}
	stillAsks := ses.answerByStart(e, tool, call)
	if tool == "" && ses.Activity == ToolRunning {
		tool = ses.Detail
	}
	isNews := stillAsks || ses.work(e, ToolRunning, tool)
	ses.Calls = remember(ses.Calls, call, maxCalls)
	return isNews
}

// endCall ends a tool call. It does not open a turn that is known to be over.
func (ses *Session) endCall(e *event) (isNews bool) {
	call, tool := e.idOf("tool_call_id"), wire.Clip(e.Text("tool", "tool_name", "name"), maxID)
	isOfTurn := ses.Turn.ID != "" && (e.turn == "" || e.turn == ses.Turn.ID)
	if isLate := ses.hasEnded(e.turn) || isOfTurn && !ses.Turn.IsOpen(); !isLate {
		isNews = ses.answerByEnd(tool, call) || ses.work(e, Thinking, "")
	}
	ses.EndedCalls = remember(ses.EndedCalls, call, maxCalls)
	return isNews
}

// changeState applies what a runner saw on the screen, or what somebody reports outright.
func (ses *Session) changeState(e *event, a Activity) bool {
	if ses.answerBeside(e.idOf("id")) {
		return true
	}
	if ses.hasEnded(e.turn) || ses.isOver() && e.turn == "" && e.session != "" {
		return false
	}
	detail, id := wire.Clip(e.Text(wire.FieldDetail), maxDetail), e.idOf("id")
	switch a {
	case Thinking, Responding, ToolRunning:
		if id != "" && len(ses.Requests) == 0 && !ses.Turn.IsOpen() {
			return false // it answers a question of a turn that is over by now
		}
		if ses.answerID(id) {
			return true
		}
		if ses.isOver() {
			ses.setActivity(Unknown, "") // the runner sees that it goes on
		}
		return ses.work(e, a, detail)
	case Confirming:
		isClaim := e.source == wire.SourcePTY && e.restsOn() != FromScreen // it was not read
		return ses.ask(e, Waiting{Kind: Permission, Prompt: e.Text(wire.FieldDetail), IsIncomplete: isClaim})
	case AwaitingInput:
		return ses.ask(e, Waiting{Kind: Question, Prompt: e.Text(wire.FieldDetail)})
	case Idle:
		if e.turn != "" && e.turn != ses.Turn.ID {
			return false
		}
		ses.Turn.Status = TurnIdle // a named turn may still report that it goes on
	case Exited, Error, Limited, Starting:
		ses.cutOff(e, Failed)
	case Unknown:
		if ses.isOver() || len(ses.Requests) > 0 && id == "" {
			return false // it may still ask, and what has ended is not back
		}
		if ses.answerID(id) {
			return true
		}
	default:
		return false
	}
	ses.setActivity(a, detail)
	if a == Limited {
		ses.Until = e.limitEnd()
	}
	return true
}

func (ses *Session) startSession(e *event) bool {
	source := e.Text("source")
	switch {
	case source == "compact": // the session goes on
		if ses.Detail == "compacting" {
			ses.Detail = ""
		}
		return !ses.isOver()
	case e.session != "" && (source != "resume" || ses.isRunners()) && (ses.Turn.IsOpen() || ses.HasStart && !ses.isOver()):
		if !ses.HasStart {
			ses.HasStart, ses.StartedAt = true, e.at
		}
		return false // later than its first turn, or a repeat
	}
	ses.cutOff(e, Interrupted)
	if e.session == "" && source != "resume" && ses.isOver() { // its turns may reuse ids
		ses.Turn.ID, ses.EndedTurns = "", nil
	}
	ses.setOrigin(e)
	ses.HasStart, ses.StartedAt, ses.Turn.Status, ses.FirstSeq, ses.Requests = true, e.at, TurnIdle, e.seq, nil
	ses.setActivity(Idle, "")
	return true
}

// matchTurn reports whether an id means the current turn: it is empty, its own, or the first id for an unnamed turn.
func (ses *Session) matchTurn(id string) bool {
	if ses.Turn.IsGenerated && ses.Turn.IsOpen() && id != "" && id != ses.Turn.ID && !ses.hasEnded(id) {
		ses.Turn.ID, ses.Turn.IsGenerated = id, false
	}
	return id == "" || id == ses.Turn.ID || ses.Turn.ID == ""
}

// beginTurn begins the turn that an event names. An earlier one is over; how it ended is not known.
func (ses *Session) beginTurn(e *event) {
	ses.rememberEnded(ses.Turn.ID)
	ses.Turn.ID, ses.Turn.IsGenerated = cmp.Or(e.turn, "turn-"+strconv.FormatUint(e.seq, 10)), e.turn == ""
	ses.Turn.Status, ses.Turn.Began, ses.Turn.Seq = TurnBusy, e.at, e.seq
	ses.Calls, ses.EndedCalls = nil, nil
	ses.Turn.Reopened = 0
	ses.setActivity(Unknown, "")
}

// reopenTurn reopens the turn that a hook names, if its end was reported as completed. Hooks run in parallel, and any
// of them may keep the program from stopping: what begins after that belongs to the same turn.
func (ses *Session) reopenTurn(e *event) bool {
	last := ses.End()
	isOfTurn := e.source == wire.SourceHook && e.turn != "" && e.turn == ses.Turn.ID
	if !isOfTurn || last == nil || last.Status != Completed || ses.isOver() {
		return false
	}
	ses.EndedTurns = forget(ses.EndedTurns, ses.Turn.ID)
	if last.DurationMS > 0 {
		ses.Turn.Began = last.At.Add(-last.Duration())
	}
	ses.Last, ses.Turn.Status = nil, TurnBusy
	ses.Turn.Reopened++
	return true
}

// cutOff ends the current turn without an event of its own.
func (ses *Session) cutOff(e *event, status string) {
	if ses.Turn.IsOpen() {
		ses.recordEnd(e, Last{Status: status, IsCutOff: true})
		ses.Turn.Status = TurnTerminal
	}
	ses.rememberEnded(ses.Turn.ID)
}

// recordEnd records how the turn ended, which l begins to say.
func (ses *Session) recordEnd(e *event, l Last) {
	l.ID, l.At = ses.Turn.ID, e.at
	hasBegun := !ses.Turn.Began.IsZero()
	if hasBegun && ses.Word() == WordIdle && ses.Since.After(ses.Turn.Began) {
		l.At = ses.Since // the screen showed the end before this event
	}
	if hasBegun && l.At.After(ses.Turn.Began) {
		l.DurationMS = l.At.Sub(ses.Turn.Began).Milliseconds()
	} else if ses.Last != nil && ses.Last.ID == ses.Turn.ID {
		l.DurationMS = ses.Last.DurationMS
	}
	if l.Status == Failed && !l.IsCutOff {
		l.Error = e.Text("error", "error_summary", "summary")
		if l.Error == "" && hasBegun && !e.errorAt.Before(ses.Turn.Began) {
			l.Error = e.lastError
		}
		l.Error = wire.Clip(l.Error, maxDetail)
	}
	ses.Last, ses.Turn.Began = &l, time.Time{}
	ses.rememberEnded(ses.Turn.ID)
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

func (ses *Session) hasEnded(id string) bool { return slices.Contains(ses.EndedTurns, id) }
func (ses *Session) rememberEnded(id string) { ses.EndedTurns = remember(ses.EndedTurns, id, maxEnded) }

// asksOutsideTurn reports whether a question is outside any turn, so that the end of a named turn does not answer it.
func (ses *Session) asksOutsideTurn(e *event) bool {
	return len(ses.Requests) > 0 && !ses.Turn.IsOpen() && e.turn != ""
}

// setActivity sets what the program does now, and with that answers what it asked itself. While a sub-agent asks, that is what it
// does, until it ends or can go no further.
func (ses *Session) setActivity(a Activity, detail string) {
	ses.Activity, ses.Detail, ses.IsReplaced, ses.Until = a, detail, false, time.Time{}
	switch ses.Requests = ses.beside(); a {
	case Exited, Error, Limited, Starting:
		ses.Requests = nil
	}
	ses.showRequest()
}

// setOrigin takes over the thread and the transport that an event names.
func (ses *Session) setOrigin(e *event) {
	ses.Turn.Thread = cmp.Or(shortID(e.Text("thread_id")), ses.Turn.Thread)
	ses.Turn.Transport = cmp.Or(wire.Clip(e.Text("transport"), maxID), ses.Turn.Transport)
}
