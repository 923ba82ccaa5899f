package reducer

import "slices"

// startCall is the beginning of a tool call.
func (t *Turn) startCall(e *event) bool {
	call := e.idOf("tool_call_id")
	if t.hasCallEnded(call) || t.hasEnded(e.turn) && (call == "" || t.hasCallStarted(call) || !t.reopenTurn(e)) {
		return false
	}
	tool := clip(e.Text("tool", "tool_name", "title", "name"), maxName)
	stillAsks, isNews := t.answerCall(e, tool, call, true)
	if !stillAsks {
		if tool == "" && t.Activity == ToolRunning {
			tool = t.Detail
		}
		isNews = t.work(e, ToolRunning, tool)
	}
	t.StartedCalls = remember(t.StartedCalls, call, maxCalls)
	return isNews
}

// endCall is the end of a tool call. It is no evidence that a turn goes on which
// was seen to be over.
func (t *Turn) endCall(e *event) (isNews bool) {
	call := e.idOf("tool_call_id")
	isLate := t.hasEnded(e.turn) || t.Status != TurnBusy && t.ID != "" && (e.turn == "" || e.turn == t.ID)
	if !isLate {
		tool := clip(e.Text("tool", "tool_name", "name"), maxName)
		var stillAsks bool
		if stillAsks, isNews = t.answerCall(e, tool, call, false); !stillAsks {
			isNews = t.work(e, Thinking, "")
		}
	}
	t.EndedCalls = remember(t.EndedCalls, call, maxCalls)
	return isNews
}

func (t *Turn) hasCallStarted(call string) bool { return slices.Contains(t.StartedCalls, call) }
func (t *Turn) hasCallEnded(call string) bool   { return slices.Contains(t.EndedCalls, call) }
