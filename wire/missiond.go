package wire

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The vocabulary of missiond's PTY manager: agents in slots, as it lists them
// (camelCase), counts them and tells of them.

// PTYAgentInfo is one slot and what runs in it.
type PTYAgentInfo struct {
	SlotID        string       `json:"slotId"`
	Role          string       `json:"role"`
	PID           *uint32      `json:"pid,omitzero"`
	State         SessionState `json:"state"`
	StartedAt     *int64       `json:"startedAt,omitzero"` // milliseconds since 1970
	CurrentTaskID *string      `json:"currentTaskId,omitzero"`
	LogFile       string       `json:"logFile"`
}

func (PTYAgentInfo) form() *group {
	return plainly(field{"slotId", must, text}, field{"role", must, text}, field{"pid", may, count}, field{"state", must, slotStates},
		field{"startedAt", may, number}, field{"currentTaskId", may, text}, field{"logFile", must, text})
}

// Debug is what Rust's {:?} prints.
func (i PTYAgentInfo) Debug() string {
	pid, started, task := "None", "None", "None"
	if i.PID != nil {
		pid = fmt.Sprintf("Some(%d)", *i.PID)
	}
	if i.StartedAt != nil {
		started = fmt.Sprintf("Some(%d)", *i.StartedAt)
	}
	if i.CurrentTaskID != nil {
		task = fmt.Sprintf("Some(%q)", *i.CurrentTaskID)
	}
	return fmt.Sprintf("PTYAgentInfo { slot_id: %q, role: %q, pid: %s, state: %s, started_at: %s, current_task_id: %s, log_file: %q }",
		i.SlotID, i.Role, pid, i.State.Debug(), started, task, i.LogFile)
}

// SessionState is what the agent in a slot does.
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

// Debug is the name of Rust's variant: ToolRunning.
func (s SessionState) Debug() string {
	var b strings.Builder
	for part := range strings.SplitSeq(string(s), "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// PTYExecuteResult is an agent's answer to a task.
type PTYExecuteResult struct {
	Response   string `json:"response"`
	DurationMS uint64 `json:"duration_ms"`
}

// Debug is what Rust's {:?} prints.
func (r PTYExecuteResult) Debug() string {
	return fmt.Sprintf("PTYExecuteResult { response: %q, duration_ms: %d }", r.Response, r.DurationMS)
}

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
	for _, st := range states {
		switch st {
		case SlotExited, SlotError:
			s.Stopped++
			continue
		case SlotIdle:
			s.Idle++
		case SlotThinking, "responding", "tool_running", SlotConfirming:
			s.Busy++
		}
		s.Running++
	}
	return s
}

// Debug is what Rust's {:?} prints.
func (s ManagerStats) Debug() string {
	return fmt.Sprintf("ManagerStats { total: %d, running: %d, idle: %d, busy: %d, stopped: %d }", s.Total, s.Running, s.Idle, s.Busy, s.Stopped)
}

// ManagerEvent is what the manager tells of a slot. Theirs has no JSON; this
// one is a convention of this project.
type ManagerEvent struct {
	Kind      string          `json:"kind"`
	SlotID    string          `json:"slot_id"`
	NewState  SessionState    `json:"new_state"`
	PrevState SessionState    `json:"prev_state"`
	Prompt    string          `json:"prompt"`
	ToolInfo  json.RawMessage `json:"tool_info"` // nil: None
	ExitCode  int32           `json:"exit_code"`
}

func (ManagerEvent) form() *group { return &slotKinds }

// Debug is the line that Rust's {:?} prints of it; a tool's info stands there
// as JSON.
func (e ManagerEvent) Debug() string {
	switch e.Kind {
	case "spawned":
		return fmt.Sprintf("Spawned { slot_id: %q }", e.SlotID)
	case "state_change":
		return fmt.Sprintf("StateChange { slot_id: %q, new_state: %s, prev_state: %s }", e.SlotID, e.NewState.Debug(), e.PrevState.Debug())
	case "confirm_required":
		info := "None"
		if len(e.ToolInfo) > 0 {
			info = "Some(" + string(e.ToolInfo) + ")"
		}
		return fmt.Sprintf("ConfirmRequired { slot_id: %q, prompt: %q, tool_info: %s }", e.SlotID, e.Prompt, info)
	case "exited":
		return fmt.Sprintf("Exited { slot_id: %q, exit_code: %d }", e.SlotID, e.ExitCode)
	}
	return e.Kind
}
