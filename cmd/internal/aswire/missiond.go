package aswire

import (
	"path/filepath"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire/foreign"
)

// Slot is a member as missiond's PTY manager writes it, whose only question is a confirmation, and where a slot that
// was never spawned is exited.
func Slot(t *teamdir.Team, m presence.Member) foreign.PTYAgentInfo {
	log := filepath.Join(t.Box(m.Name).Path(), "run", "screen.cast")
	slot := foreign.PTYAgentInfo{SlotID: string(m.Name), Role: m.Role, LogFile: log}
	if m.PID != nil {
		slot.PID = new(uint32(*m.PID))
		if !m.Started.IsZero() {
			slot.StartedAt = new(m.Started.UnixMilli())
		}
	}
	if m.TurnStatus == reducer.TurnBusy && m.State != reducer.WordOff && m.TurnID != "" { // else its runner was killed
		slot.CurrentTaskID = new(string(m.TurnID))
	}
	activity := reducer.Exited
	switch {
	case m.State == reducer.WordOff:
	case m.Activity == reducer.AwaitingInput:
		activity = reducer.Confirming
	case m.Activity != reducer.Unknown:
		activity = m.Activity
	case m.TurnStatus == reducer.TurnBusy:
		activity = reducer.Thinking
	case m.Running:
		activity = reducer.Starting
	}
	slot.State = foreign.SlotState(activity)
	return slot
}
