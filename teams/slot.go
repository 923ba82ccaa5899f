package teams

import (
	"path/filepath"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Slot is a member as a PTY manager writes it (vocabulary B). That one knows no question
// but a confirmation, and a slot that was never spawned has exited.
func (t *Team) Slot(m Member) wire.PTYAgentInfo {
	info := wire.PTYAgentInfo{
		SlotID: string(m.Name), Role: m.Role, State: slotState(m),
		LogFile: filepath.Join(t.Box(m.Name).Path(), "run", "screen.cast"),
	}
	if m.PID > 0 {
		pid := uint32(m.PID)
		info.PID = &pid
		if !m.Started.IsZero() {
			ms := m.Started.UnixMilli()
			info.StartedAt = &ms
		}
	}
	if m.TurnStatus == reducer.TurnBusy {
		info.CurrentTaskID = &m.TurnID
	}
	return info
}

func slotState(m Member) wire.SessionState {
	switch {
	case m.State == reducer.WordOff:
		return wire.SlotExited
	case m.Activity == reducer.AwaitingInput:
		return wire.SlotConfirming
	case m.Activity != reducer.Unknown:
		return wire.SessionState(m.Activity)
	case m.TurnStatus == reducer.TurnBusy:
		return wire.SlotThinking
	case m.Running:
		return wire.SlotStarting
	}
	return wire.SlotExited
}
