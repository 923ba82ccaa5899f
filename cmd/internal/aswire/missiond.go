package aswire

import (
	"path/filepath"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
)

// Slot is a member as missiond's PTY manager writes it, whose only question is a confirmation, and where a slot that
// was never spawned is exited.
func Slot(t *teamdir.Team, m presence.Member) map[string]any {
	log := filepath.Join(t.Box(m.Name).Path(), "run", "screen.cast")
	slot := map[string]any{"slotId": m.Name, "role": m.Role, "state": reducer.Exited, "logFile": log}
	if m.PID != nil {
		slot["pid"] = m.PID
		if !m.Started.IsZero() {
			slot["startedAt"] = m.Started.UnixMilli()
		}
	}
	if m.TurnStatus == reducer.TurnBusy && m.State != reducer.WordOff { // else its runner was killed
		slot["currentTaskId"] = m.TurnID
	}
	switch {
	case m.State == reducer.WordOff:
	case m.Activity == reducer.AwaitingInput:
		slot["state"] = reducer.Confirming
	case m.Activity != reducer.Unknown:
		slot["state"] = m.Activity
	case m.TurnStatus == reducer.TurnBusy:
		slot["state"] = reducer.Thinking
	case m.Running:
		slot["state"] = reducer.Starting
	}
	return slot
}
