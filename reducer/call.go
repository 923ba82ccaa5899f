package reducer

import "slices"

// calls is the beginning of a tool's call.
func (t *Turn) calls(h *happening) bool {
	call := h.ident("tool_call_id")
	if t.heardOf(call, ending) || t.over(h.turn) && (call == "" || t.heardOf(call, beginning) || !t.goesOn(h)) {
		return false
	}
	tool := clip(h.body().Text("tool", "tool_name", "title", "name"), maxTool)
	if t.Waiting != nil {
		if asks, other := t.answered(h, tool, call, true); asks {
			t.hears(h, call, beginning)
			return other
		}
	}
	if tool == "" && t.Activity == ToolRunning {
		tool = t.Detail
	}
	news := t.works(h, ToolRunning, tool)
	t.hears(h, call, beginning)
	return news
}

// returns is the end of a tool's call. It is no evidence that a turn goes on
// which was seen to be over.
func (t *Turn) returns(h *happening) bool {
	call := h.ident("tool_call_id")
	if t.over(h.turn) || t.Status != TurnBusy && t.ID != "" && (h.turn == "" || h.turn == t.ID) {
		t.hears(h, call, ending)
		return false
	}
	if t.Waiting != nil {
		tool := clip(h.body().Text("tool", "tool_name", "name"), maxTool)
		if asks, other := t.answered(h, tool, call, false); asks {
			t.hears(h, call, ending)
			return other
		}
	}
	news := t.works(h, Thinking, "")
	t.hears(h, call, ending)
	return news
}

// The ends of a call, in a mark.
const (
	beginning = 0
	ending    = 1
)

// hears notes that a call of the current turn has begun or ended.
func (t *Turn) hears(h *happening, call string, which uint64) {
	if call != "" && (h.turn == "" || h.turn == t.ID) && !t.heardOf(call, which) {
		t.Calls.add(mark(call)&^1|which, keptCalls)
	}
}

func (t *Turn) heardOf(call string, which uint64) bool {
	return call != "" && len(t.Calls) > 0 && t.Calls.has(mark(call)&^1|which)
}

// goesOn opens again the turn that an event names, if all that is known of its
// end is what a hook said. Hooks of one moment run beside each other, and any
// may keep the program from stopping: what begins after that is of the same
// turn.
func (t *Turn) goesOn(h *happening) bool {
	if !t.Soft || h.Source != "hook" || h.turn == "" || h.turn != t.ID || t.Status == TurnBusy || t.ended() {
		return false
	}
	if i := slices.Index(t.Over, mark(t.ID)); i >= 0 {
		if t.Over = slices.Delete(t.Over, i, i+1); len(t.Over) == 0 {
			t.Over = nil
		}
	}
	if l := t.Last; l != nil && l.ID == t.ID {
		if l.Duration > 0 {
			t.Began = l.At.Add(-l.Duration)
		}
		t.Last = nil
	}
	t.Status, t.Soft, t.Anew = TurnBusy, false, min(t.Anew+1, maxAnew)
	return true
}
