package wire

import "slices"

// A kind is one variant of what a vocabulary says. Its name is the value of the group's
// tag, and its fields are in the order in which its owner writes them.
type kind struct {
	name   string
	fields []field
}

// A group is the kinds that one tag tells apart.
type group struct {
	tag   string
	kinds []kind
}

// The kinds of event that are understood. The daemon's own turns have all their
// fields; hooks and scripts may leave some out.
var (
	blank = text.or(`""`)

	daemonKinds = group{"kind", []kind{
		{TurnStarted, []field{{"agent", optional, blank}, {"thread_id", optional, blank}, {"turn_id", optional, blank}, {"transport", optional, blank}}},
		{TurnCompleted, []field{{"agent", optional, blank}, {"thread_id", optional, blank}, {"turn_id", optional, blank}, {"status", required, turnEnd},
			{"transport", optional, blank}, {"error", extra, anything}}},
		{TurnIdle, []field{{"agent", optional, blank}, {"turn_id", optional, blank}, {"transport", optional, blank}, {"thread_id", extra, anything}}},
		{StreamFailed, []field{{"agent_id", required, text}, {"session_id", required, text}, {"error_summary", required, text}}},
		{DroppedCounters, []field{{"agent_id", required, text}, {"dropped", required, count}, {"unknown", required, count}}},
	}}
	sessionKinds = group{"event_type", []kind{
		{"agent_output", []field{{"stream", required, streams}, {"content", required, text}}},
		{"draft_ready", []field{{"draft_id", required, uuidText}, {"summary", required, text}, {"artifact_count", required, count}}},
		{"goal_complete", []field{{"goal_id", required, uuidText}}},
		{"waiting_for_input", []field{{"prompt", required, text}, {"id", extra, anything}}},
		{"status_update", []field{{"message", required, text}}},
	}}
	acpKinds = group{"update_type", []kind{
		{"message_delta", []field{{"delta", required, text}}},
		{"tool_call_start", []field{{"tool_call", required, toolCall}, {"tool", extra, anything}, {"tool_call_id", extra, anything}}},
		{"tool_call_end", []field{{"tool_call_id", required, text}, {"result", required, anything}, {"tool", extra, anything}, {"status", extra, anything}}},
		{"turn_complete", []field{{"status", required, acpEnd}, {"error", extra, anything}}},
		{"error", []field{{"code", required, text}, {"message", required, text}}},
		{"server_request", []field{{"request", required, toolRequest}, {"tool", extra, anything}, {"prompt", extra, anything}, {"id", extra, anything}}},
	}}
	// The Agent Client Protocol of today. It grows, so any kind may have any field.
	currentKinds = group{"sessionUpdate", []kind{
		{"user_message_chunk", nil}, {"agent_message_chunk", nil}, {"agent_thought_chunk", nil}, {"tool_call", nil}, {"tool_call_update", nil},
		{"plan", nil}, {"available_commands_update", nil}, {"current_mode_update", nil}, {"config_option_update", nil},
		{"session_info_update", nil}, {"usage_update", nil},
	}}
	currentFields = []field{
		{"sessionUpdate", optional, str}, {"sessionId", optional, str}, {"toolCallId", optional, str}, {"title", optional, str}, {"status", optional, str},
		{"kind", optional, str}, {"messageId", optional, str}, {"currentModeId", optional, str}, {"entries", optional, array}, {"availableCommands", optional, array},
		{"locations", optional, array}, {"toolCall", optional, mapping}, {"options", optional, array},
	}
	// What the runner and the hooks say.
	ownKinds = group{"kind", []kind{
		{"session_start", []field{{"source", optional, str}, {"reason", extra, anything}}},
		{"session_end", []field{{"reason", optional, str}}},
		{"spawned", []field{{"pid", optional, whole}, {"started", optional, anything}}},
		{"state_change", []field{{"new", optional, str}, {"previous", optional, str}, {"detail", optional, str}, {"id", extra, anything}}},
		{"confirm_required", []field{{"tool", optional, str}, {"prompt", optional, str}, {"id", optional, str}, {"options", optional, array},
			{"tool_call_id", extra, anything}, {"input", optional, str}, {"dialog", optional, str}}},
		{"exited", []field{{"code", optional, whole}, {"signal", optional, str}}},
		{"restarting", []field{{"attempt", optional, whole}, {"pause_ms", optional, whole}}},
	}}
	mailboxKinds = group{"kind", []kind{
		{EventAnnounced, ids}, {EventRead, append(ids, field{"batch", optional, str})}, {EventAcked, ids}, {EventWithdrawn, ids},
		{EventInjecting, ids}, {EventInjected, ids}, {EventInjectionFailed, append(ids, field{"outcome", optional, str}, field{"reason", optional, str})},
		{EventTaken, ids}, {EventReturned, ids}, {EventAside, ids}, {EventAgain, ids},
	}}
	ids = []field{{"id", optional, str}}
)

// Values that are no events and have kinds, too.
var (
	inputKinds = group{"input_type", []kind{
		{"message", []field{{"text", required, text}}},
		{"approve", []field{{"draft_id", required, uuidText}, {"artifact_uri", optional, text.or("null")}}},
		{"reject", []field{{"draft_id", required, uuidText}, {"artifact_uri", optional, text.or("null")}, {"reason", required, text}}},
		{"abort", nil},
	}}
	promptKinds = group{"type", []kind{
		{"text", []field{{"text", required, text}}},
		{"image", []field{{"data", required, text}, {"mime_type", required, text}, {"is_url", listed, boolean.or("false")}}},
		{"context", []field{{"path", required, text}, {"content", required, text}, {"language", optional, text}}},
	}}
	outcomeKinds = group{"outcome", []kind{{"selected", []field{{"option_id", required, text}}}, {"cancelled", nil}}}
	slotKinds    = group{"kind", []kind{
		{"spawned", slot}, {"exited", append(slot, field{"exit_code", required, whole})},
		{"state_change", append(slot, field{"new_state", required, slotStates}, field{"prev_state", required, slotStates})},
		{"confirm_required", append(slot, field{"prompt", required, text}, field{"tool_info", optional, anything.or("null")})},
	}}
	slot = []field{{"slot_id", required, text}}
)

// eventGroups are the kinds of event, each once.
var eventGroups = []*group{&daemonKinds, &sessionKinds, &acpKinds, &currentKinds, &ownKinds, &mailboxKinds}

// find is a kind, nil for one that the group does not have.
func (g *group) find(name string) *kind {
	if i := slices.Index(g.names(), name); i >= 0 {
		return &g.kinds[i]
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
func Kinds() (all []string) {
	for _, g := range eventGroups {
		all = append(all, g.names()...)
	}
	slices.Sort(all)
	return all
}

// commonFields are what any kind may have.
var commonFields = []string{"turn_id", "session", "event_id", "thread_id", "transport"}

// FieldsOf are the fields that mean something in a kind of event: its own, then those
// of every kind; nil for a kind that may have any field.
func FieldsOf(kind string) (names []string) {
	g, k := kindOf(kind)
	if k == nil || g == &currentKinds || g == &mailboxKinds {
		return nil
	}
	for _, f := range k.fields {
		if f.name != "agent" && f.name != "agent_id" && f.name != "session_id" { // the log says it
			names = append(names, f.name)
		}
	}
	for _, name := range commonFields {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Means reports whether a field means something in a kind of event: it is one of
// FieldsOf, or another vocabulary's name for one. In a kind that may have any field,
// every field does.
func Means(kind, field string) bool {
	known := FieldsOf(kind)
	if known == nil || slices.Contains(known, field) || slices.Contains(eventFields, field) {
		return true
	}
	for name, paths := range aliases {
		isAlias := slices.ContainsFunc(paths, func(path []string) bool { return path[0] == field })
		if isAlias && (slices.Contains(known, name) || name == "agent" || name == "session") {
			return true
		}
	}
	return false
}
