package foreign

import "encoding/json"

// The PTY manager missiond. Its events have no JSON of their own: their form here is atm's.
var (
	slotState = oneOf("starting", "idle", "thinking", "responding", "tool_running", "confirming", "error", "exited")

	ptyAgentInfo = object(func() members {
		return members{required("slotId", text), required("role", text), optional("pid", uint32s), required("state", slotState),
			optional("startedAt", integer), optional("currentTaskId", text), required("logFile", text)}
	})
	managerEvent = tagged("kind", func() kinds {
		return kinds{
			"spawned":          {required("slot_id", text)},
			"state_change":     {required("slot_id", text), required("new_state", slotState), required("prev_state", slotState)},
			"confirm_required": {required("slot_id", text), required("prompt", text), orAbsent("tool_info", anything, "null")},
			"exited":           {required("slot_id", text), required("exit_code", integer)},
		}
	})
)

// SlotState is missiond's SessionState: starting, idle, thinking, responding, tool_running, confirming, error or exited.
type SlotState string

// PTYAgentInfo is how missiond shows an agent, in a slot of its manager.
type PTYAgentInfo struct {
	SlotID        string    `json:"slotId"`
	Role          string    `json:"role"`
	PID           *uint32   `json:"pid"`
	State         SlotState `json:"state"`
	StartedAt     *int64    `json:"startedAt"` // in milliseconds
	CurrentTaskID *string   `json:"currentTaskId"`
	LogFile       string    `json:"logFile"`
}

// ManagerEvent is what missiond's manager tells, with the members of all kinds: spawned, state_change, confirm_required and
// exited.
type ManagerEvent struct {
	Kind      string          `json:"kind"`
	SlotID    string          `json:"slot_id"`
	NewState  SlotState       `json:"new_state"`
	PrevState SlotState       `json:"prev_state"`
	Prompt    string          `json:"prompt"`
	ToolInfo  json.RawMessage `json:"tool_info"`
	ExitCode  int             `json:"exit_code"`
}

// PTYExecuteResult is missiond's answer to a task: what the agent said, and how long that took.
type PTYExecuteResult struct {
	Response   string `json:"response"`
	DurationMS uint64 `json:"duration_ms"`
}

// ManagerStats counts agents as missiond's manager does: Running are those that start, are idle or busy.
type ManagerStats struct {
	Total   int `json:"total"`
	Running int `json:"running"`
	Idle    int `json:"idle"`
	Busy    int `json:"busy"`
	Stopped int `json:"stopped"`
}

// StatsOf counts agents by their states, as the manager does. A state is a SlotState or, as package teams has it, a
// reducer.Word: blocked counts as busy, limited as running, off as stopped, and people and what is unknown in the total
// only.
func StatsOf[State ~string](states ...State) ManagerStats {
	s := ManagerStats{Total: len(states)}
	for _, state := range states {
		switch state {
		case "starting", "limited":
			s.Running++
		case "idle":
			s.Idle++
		case "thinking", "responding", "tool_running", "confirming", "busy", "blocked":
			s.Busy++
		case "exited", "error", "off":
			s.Stopped++
		}
	}
	s.Running += s.Idle + s.Busy
	return s
}

// UnmarshalJSON reads what the manager would read. The error is a *wire.DecodeError or wire.ErrNotObject.
func (v *SlotState) UnmarshalJSON(b []byte) error { return slotState.read(b, v) }

func (v PTYAgentInfo) MarshalJSON() ([]byte, error)  { return ptyAgentInfo.write(v) }
func (v *PTYAgentInfo) UnmarshalJSON(b []byte) error { return ptyAgentInfo.read(b, v) }

func (v ManagerEvent) MarshalJSON() ([]byte, error)  { return managerEvent.write(v) }
func (v *ManagerEvent) UnmarshalJSON(b []byte) error { return managerEvent.read(b, v) }
