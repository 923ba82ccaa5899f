package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// The vocabulary of missiond's PTY manager: agents in slots, as it lists them
// (camelCase), counts them and tells of them.

// PTYAgentInfo is one slot and what runs in it.
type PTYAgentInfo struct {
	SlotID        string       `wire:"slotId"`
	Role          string       `wire:"role"`
	PID           *uint32      `wire:"pid,omit"`
	State         SessionState `wire:"state"`
	StartedAt     *int64       `wire:"startedAt,omit"` // milliseconds since 1970
	CurrentTaskID *string      `wire:"currentTaskId,omit"`
	LogFile       string       `wire:"logFile"`
}

// Debug is the line that Rust's {:?} prints of it.
func (i PTYAgentInfo) Debug() string {
	pid, started, task := "None", "None", "None"
	if i.PID != nil {
		pid = fmt.Sprintf("Some(%d)", *i.PID)
	}
	if i.StartedAt != nil {
		started = fmt.Sprintf("Some(%d)", *i.StartedAt)
	}
	if i.CurrentTaskID != nil {
		task = "Some(" + rustQuote(*i.CurrentTaskID) + ")"
	}
	return fmt.Sprintf("PTYAgentInfo { slot_id: %s, role: %s, pid: %s, state: %s, started_at: %s, current_task_id: %s, log_file: %s }",
		rustQuote(i.SlotID), rustQuote(i.Role), pid, i.State.Debug(), started, task, rustQuote(i.LogFile))
}

// SessionState is what the agent in a slot does.
type SessionState string

// The states of a slot.
const (
	SlotStarting    SessionState = "starting"
	SlotIdle        SessionState = "idle"
	SlotThinking    SessionState = "thinking"
	SlotResponding  SessionState = "responding"
	SlotToolRunning SessionState = "tool_running"
	SlotConfirming  SessionState = "confirming"
	SlotError       SessionState = "error"
	SlotExited      SessionState = "exited"
)

func (SessionState) variants() []string {
	return []string{"starting", "idle", "thinking", "responding", "tool_running", "confirming", "error", "exited"}
}

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
	Response   string `wire:"response"`
	DurationMS uint64 `wire:"duration_ms"`
}

// Debug is the line that Rust's {:?} prints of it.
func (r PTYExecuteResult) Debug() string {
	return fmt.Sprintf("PTYExecuteResult { response: %s, duration_ms: %d }", rustQuote(r.Response), r.DurationMS)
}

// ManagerStats counts slots.
type ManagerStats struct {
	Total   uint64 `wire:"total"`
	Running uint64 `wire:"running"` // starting ones too
	Idle    uint64 `wire:"idle"`
	Busy    uint64 `wire:"busy"`
	Stopped uint64 `wire:"stopped"` // exited or error
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
		case SlotThinking, SlotResponding, SlotToolRunning, SlotConfirming:
			s.Busy++
		}
		s.Running++
	}
	return s
}

// Debug is the line that Rust's {:?} prints of it.
func (s ManagerStats) Debug() string {
	return fmt.Sprintf("ManagerStats { total: %d, running: %d, idle: %d, busy: %d, stopped: %d }", s.Total, s.Running, s.Idle, s.Busy, s.Stopped)
}

// ManagerEvent is what the manager tells of a slot. Theirs has no JSON; this
// one is a convention of this project.
type ManagerEvent struct {
	Kind      string          `wire:"kind" kinds:"spawned state_change confirm_required exited"`
	SlotID    string          `wire:"slot_id"`
	NewState  SessionState    `wire:"new_state" on:"state_change"`
	PrevState SessionState    `wire:"prev_state" on:"state_change"`
	Prompt    string          `wire:"prompt" on:"confirm_required"`
	ToolInfo  json.RawMessage `wire:"tool_info,option" on:"confirm_required"`
	ExitCode  int32           `wire:"exit_code" on:"exited"`
}

// Debug is the line that Rust's {:?} prints of it; a tool's info stands there
// as JSON.
func (e ManagerEvent) Debug() string {
	slot := rustQuote(e.SlotID)
	switch e.Kind {
	case "spawned":
		return fmt.Sprintf("Spawned { slot_id: %s }", slot)
	case "state_change":
		return fmt.Sprintf("StateChange { slot_id: %s, new_state: %s, prev_state: %s }", slot, e.NewState.Debug(), e.PrevState.Debug())
	case "confirm_required":
		info := "None"
		if len(e.ToolInfo) > 0 {
			info = "Some(" + string(e.ToolInfo) + ")"
		}
		return fmt.Sprintf("ConfirmRequired { slot_id: %s, prompt: %s, tool_info: %s }", slot, rustQuote(e.Prompt), info)
	case "exited":
		return fmt.Sprintf("Exited { slot_id: %s, exit_code: %d }", slot, e.ExitCode)
	}
	return e.Kind
}

// rustQuote is a string as Rust's {:?} prints it.
func rustQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case 0:
			b.WriteString(`\0`)
		default:
			if unicode.IsPrint(r) {
				b.WriteRune(r)
			} else {
				b.WriteString(`\u{` + strconv.FormatInt(int64(r), 16) + "}")
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}
