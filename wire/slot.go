package wire

// PTYAgentInfo is one slot of missiond's PTY manager and what runs in it. Unlike its other types it is
// written in camelCase.
type PTYAgentInfo struct {
	SlotID        string  `json:"slotId"`
	Role          string  `json:"role"`
	PID           *uint32 `json:"pid,omitzero"`
	State         string  `json:"state"`              // one of our activities
	StartedAt     *int64  `json:"startedAt,omitzero"` // milliseconds since 1970
	CurrentTaskID *string `json:"currentTaskId,omitzero"`
	LogFile       string  `json:"logFile"`
}
