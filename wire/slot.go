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

// SessionState says what the agent in a slot does: one of our activities or one of these.
type SessionState string

const (
	SlotStarting   SessionState = "starting"
	SlotThinking   SessionState = "thinking"
	SlotConfirming SessionState = "confirming"
	SlotExited     SessionState = "exited"
)
