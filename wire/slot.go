package wire

// PTYAgentInfo is one slot of missiond's PTY manager and what runs in it. Unlike its
// other types it is written in camelCase.
type PTYAgentInfo struct {
	SlotID        string       `json:"slotId"`
	Role          string       `json:"role"`
	PID           *uint32      `json:"pid,omitzero"`
	State         SessionState `json:"state"`
	StartedAt     *int64       `json:"startedAt,omitzero"` // milliseconds since 1970
	CurrentTaskID *string      `json:"currentTaskId,omitzero"`
	LogFile       string       `json:"logFile"`
}

// SessionState says what the agent in a slot does.
type SessionState string

// The states of a slot that atm says.
const (
	SlotStarting   SessionState = "starting"
	SlotIdle       SessionState = "idle"
	SlotThinking   SessionState = "thinking"
	SlotConfirming SessionState = "confirming"
	SlotError      SessionState = "error"
	SlotExited     SessionState = "exited"
)

// ManagerStats counts slots.
type ManagerStats struct {
	Total   uint64 `json:"total"`
	Running uint64 `json:"running"` // starting ones too
	Idle    uint64 `json:"idle"`
	Busy    uint64 `json:"busy"`
	Stopped uint64 `json:"stopped"` // exited or error
}

// StatsOf counts slots by their states.
func StatsOf(states []SessionState) ManagerStats {
	s := ManagerStats{Total: uint64(len(states))}
	for _, state := range states {
		switch state {
		case SlotExited, SlotError:
			s.Stopped++
		case SlotIdle:
			s.Idle++
		case SlotThinking, "responding", "tool_running", SlotConfirming:
			s.Busy++
		}
	}
	s.Running = s.Total - s.Stopped
	return s
}
