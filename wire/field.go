package wire

import (
	"slices"
	"strings"
)

// fieldsOf are the fields of each kind from which something is made here. (A
// list: a map would be made at every start.)
var fieldsOf = []struct{ kind, fields string }{
	{TurnStarted, "turn_id thread_id transport"},
	{TurnCompleted, "status turn_id thread_id transport error"},
	{TurnIdle, "turn_id transport thread_id"},
	{StreamFailed, "error_summary"},
	{DroppedCounters, "dropped unknown"},

	{"session_start", "source reason"},
	{"session_end", "reason"},
	{"spawned", "pid started"},
	{"state_change", "new previous detail id"},
	{"confirm_required", "tool prompt id options tool_call_id input dialog"},
	{"exited", "code signal"},
	{"restarting", "attempt pause_ms"},

	{"agent_output", "content stream"},
	{"draft_ready", "draft_id summary artifact_count"},
	{"goal_complete", "goal_id"},
	{"waiting_for_input", "prompt id"},
	{"status_update", "message"},

	{"message_delta", "delta"},
	{"tool_call_start", "tool tool_call_id tool_call"},
	{"tool_call_end", "tool tool_call_id status result"},
	{"turn_complete", "status error"},
	{"error", "message code"},
	{"server_request", "request tool prompt id"},
}

// everyEvent are the fields that any kind may have.
var everyEvent = []string{"turn_id", "session", "event_id", "thread_id", "transport"}

// FieldsOf are the fields of a kind that mean something, the most telling
// first, and then those of every kind; nil for a kind that anybody may fill as
// they like.
func FieldsOf(kind string) []string {
	at := slices.IndexFunc(fieldsOf, func(k struct{ kind, fields string }) bool { return k.kind == kind })
	if at < 0 {
		return nil
	}
	own := strings.Fields(fieldsOf[at].fields)
	for _, f := range everyEvent {
		if !slices.Contains(own, f) {
			own = append(own, f)
		}
	}
	return own
}

// Means reports whether a field of a kind means something: one of FieldsOf, or
// the name that another vocabulary has for one. Of a kind that has none every
// field does.
func Means(kind, field string) bool {
	known := FieldsOf(kind)
	if known == nil || slices.Contains(known, field) || slices.Contains(eventFields, field) {
		return true
	}
	for _, p := range plain {
		for _, where := range p.where {
			if where[0] == field && (slices.Contains(known, p.name) || p.name == "agent" || p.name == "session") {
				return true
			}
		}
	}
	return false
}

// activities are what state_change may call new, as format.md 5 has them.
const activities kindOf = "unknown, starting, idle, thinking, responding, tool_running, awaiting_input, confirming, exited or error"

// Says is the event that puts an agent into a state which somebody named
// instead of a kind, as it is typed; "" for no state.
func Says(word string) string {
	switch word {
	case "busy", "running", "working", "active", "started", "start":
		return "turn_started turn_id=7"
	case "idle", "ready":
		return "turn_idle"
	case "done", "completed", "complete", "finished", "terminal", "stopped":
		return "turn_completed status=completed"
	case "failed", "interrupted":
		return "turn_completed status=" + word
	case "blocked", "permission":
		return "confirm_required tool=Bash"
	case "question", "waiting":
		return "waiting_for_input prompt=Which?"
	case "online":
		return "session_start source=startup"
	case "off", "offline":
		return "session_end reason=done"
	case "unknown", "starting", "thinking", "responding", "tool_running", "awaiting_input", "confirming":
		return "state_change new=" + word
	}
	return ""
}
