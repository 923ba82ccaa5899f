package foreign

// The PTY manager missiond. Its events have no JSON of their own: their form here is atm's.
var (
	slotState = oneOf("starting", "idle", "thinking", "responding", "tool_running", "confirming", "error", "exited")

	// PTYAgentInfo is how an agent is, in a slot of the manager.
	PTYAgentInfo = object(required("slotId", text), required("role", text), optional("pid", uint32s), required("state", slotState),
		optional("startedAt", integer), optional("currentTaskId", text), required("logFile", text))
)
