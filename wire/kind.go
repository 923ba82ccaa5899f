package wire

import "slices"

// A kind is one variant of what a vocabulary says: its name, which stands under
// the group's tag, and its fields in the order in which its owner writes them.
type kind struct {
	name   string
	fields []field
}

// A group is the kinds that one tag tells apart.
type group struct {
	tag   string
	kinds []kind
}

// The events that are understood.
var (
	daemonKinds = group{"kind", []kind{
		{TurnStarted, []field{{"agent", may, text}, {"thread_id", may, text}, {"turn_id", may, text}, {"transport", may, text}}},
		{TurnCompleted, []field{{"agent", may, text}, {"thread_id", may, text}, {"turn_id", may, text}, {"status", must, turnEnd},
			{"transport", may, text}, {"error", ours, anything}}},
		{TurnIdle, []field{{"agent", may, text}, {"turn_id", may, text}, {"transport", may, text}, {"thread_id", ours, anything}}},
		{StreamFailed, []field{{"agent_id", must, text}, {"session_id", must, text}, {"error_summary", must, text}}},
		{DroppedCounters, []field{{"agent_id", must, text}, {"dropped", must, count}, {"unknown", must, count}}},
	}}
	sessionKinds = group{"event_type", []kind{
		{"agent_output", []field{{"stream", must, oneOf("std_out", "std_err")}, {"content", must, text}}},
		{"draft_ready", []field{{"draft_id", must, uuidText}, {"summary", must, text}, {"artifact_count", must, count}}},
		{"goal_complete", []field{{"goal_id", must, uuidText}}},
		{"waiting_for_input", []field{{"prompt", must, text}, {"id", ours, anything}}},
		{"status_update", []field{{"message", must, text}}},
	}}
	acpKinds = group{"update_type", []kind{
		{"message_delta", []field{{"delta", must, text}}},
		{"tool_call_start", []field{{"tool_call", must, toolCall}, {"tool", ours, anything}, {"tool_call_id", ours, anything}}},
		{"tool_call_end", []field{{"tool_call_id", must, text}, {"result", must, anything}, {"tool", ours, anything}, {"status", ours, anything}}},
		{"turn_complete", []field{{"status", must, oneOf("completed", "cancelled", "failed", "awaiting_input")}, {"error", ours, anything}}},
		{"error", []field{{"code", must, text}, {"message", must, text}}},
		{"server_request", []field{{"request", must, toolRequest}, {"tool", ours, anything}, {"prompt", ours, anything}, {"id", ours, anything}}},
	}}
	// The Agent Client Protocol of today, which grows: of any kind.
	currentKinds = group{"sessionUpdate", []kind{
		{"user_message_chunk", nil}, {"agent_message_chunk", nil}, {"agent_thought_chunk", nil}, {"tool_call", nil}, {"tool_call_update", nil},
		{"plan", nil}, {"available_commands_update", nil}, {"current_mode_update", nil}, {"config_option_update", nil},
		{"session_info_update", nil}, {"usage_update", nil},
	}}
	currentFields = []field{
		{"sessionUpdate", may, str}, {"sessionId", may, str}, {"toolCallId", may, str}, {"title", may, str}, {"status", may, str},
		{"kind", may, str}, {"messageId", may, str}, {"currentModeId", may, str}, {"entries", may, array}, {"availableCommands", may, array},
		{"locations", may, array}, {"toolCall", may, shape{words: "an object", kind: '{'}}, {"options", may, array},
	}
	// The runner and the hooks.
	ownKinds = group{"kind", []kind{
		{"session_start", []field{{"source", may, str}, {"reason", ours, anything}}},
		{"session_end", []field{{"reason", may, str}}},
		{"spawned", []field{{"pid", may, number}, {"started", may, anything}}},
		{"state_change", []field{{"new", may, str}, {"previous", may, str}, {"detail", may, str}, {"id", ours, anything}}},
		{"confirm_required", []field{{"tool", may, str}, {"prompt", may, str}, {"id", may, str}, {"options", may, array},
			{"tool_call_id", ours, anything}, {"input", may, str}, {"dialog", may, str}}},
		{"exited", []field{{"code", may, number}, {"signal", may, str}}},
		{"restarting", []field{{"attempt", may, number}, {"pause_ms", may, number}}},
	}}
	mailboxKinds = group{"kind", []kind{
		{EventAnnounced, ids}, {EventRead, append(ids, field{"batch", may, str})}, {EventAcked, ids}, {EventWithdrawn, ids},
		{EventInjecting, ids}, {EventInjected, ids}, {EventInjectionFailed, append(ids, field{"outcome", may, str}, field{"reason", may, str})},
		{EventTaken, ids}, {EventReturned, ids}, {EventAside, ids}, {EventAgain, ids},
	}}
	ids = []field{{"id", may, str}}
)

// What is no event, and has kinds all the same.
var (
	inputKinds = group{"input_type", []kind{
		{"message", []field{{"text", must, text}}},
		{"approve", []field{{"draft_id", must, uuidText}, {"artifact_uri", may, text}}},
		{"reject", []field{{"draft_id", must, uuidText}, {"artifact_uri", may, text}, {"reason", must, text}}},
		{"abort", nil},
	}}
	promptKinds = group{"type", []kind{
		{"text", []field{{"text", must, text}}},
		{"image", []field{{"data", must, text}, {"mime_type", must, text}, {"is_url", may, anything}}},
		{"context", []field{{"path", must, text}, {"content", must, text}, {"language", may, text}}},
	}}
	outcomeKinds = group{"outcome", []kind{{"selected", []field{{"option_id", must, text}}}, {"cancelled", nil}}}
	slotKinds    = group{"kind", []kind{
		{"spawned", slot}, {"exited", append(slot, field{"exit_code", must, number})},
		{"state_change", append(slot, field{"new_state", must, slotStates}, field{"prev_state", must, slotStates})},
		{"confirm_required", append(slot, field{"prompt", must, text}, field{"tool_info", may, anything})},
	}}
	slot = []field{{"slot_id", must, text}}
)

// eventGroups are the kinds of event, each once.
var eventGroups = []*group{&daemonKinds, &sessionKinds, &acpKinds, &currentKinds, &ownKinds, &mailboxKinds}

func (g *group) find(name string) *kind {
	for i := range g.kinds {
		if g.kinds[i].name == name {
			return &g.kinds[i]
		}
	}
	return nil
}

func (g *group) has(name string) bool { return g.find(name) != nil }

func (g *group) names() (names []string) {
	for _, k := range g.kinds {
		names = append(names, k.name)
	}
	return names
}

// kindOf is a kind of event and its group; nil for one that nobody knows.
func kindOf(name string) (*group, *kind) {
	for _, g := range eventGroups {
		if k := g.find(name); k != nil {
			return g, k
		}
	}
	return nil, nil
}

// Kinds are the kinds of event that mean something here, sorted.
func Kinds() []string {
	var all []string
	for _, g := range eventGroups {
		all = append(all, g.names()...)
	}
	slices.Sort(all)
	return all
}

// everyEvent are the fields that any kind may have.
var everyEvent = []string{"turn_id", "session", "event_id", "thread_id", "transport"}

// FieldsOf are the fields of a kind that mean something, and then those of
// every kind; nil for a kind that anybody may fill as they like.
func FieldsOf(kind string) (names []string) {
	g, k := kindOf(kind)
	if k == nil || g == &currentKinds || g == &mailboxKinds {
		return nil
	}
	for _, f := range k.fields {
		if f.name != "agent" && f.name != "agent_id" && f.name != "session_id" { // said by whose log it is
			names = append(names, f.name)
		}
	}
	for _, name := range everyEvent {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
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
