package foreign

// The daemon of agent-team-mail. Its stream's kinds are atm's own.
var (
	daemonEvent = tagged("kind", func() kinds {
		return kinds{
			"turn_started":     {orAbsent("agent", text, `""`), orAbsent("thread_id", text, `""`), orAbsent("turn_id", text, `""`), orAbsent("transport", text, `""`)},
			"turn_completed":   {orAbsent("agent", text, `""`), orAbsent("thread_id", text, `""`), orAbsent("turn_id", text, `""`), required("status", oneOf("completed", "interrupted", "failed")), orAbsent("transport", text, `""`)},
			"turn_idle":        {orAbsent("agent", text, `""`), orAbsent("turn_id", text, `""`), orAbsent("transport", text, `""`)},
			"stream_error":     {required("agent_id", text), required("session_id", text), required("error_summary", text)},
			"dropped_counters": {required("agent_id", text), required("dropped", uint64s), required("unknown", uint64s)},
		}
	})
)
