package claude

import (
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
)

// session returns what a process of Claude Code says of itself.
func session(pid int) (*agents.Session, error) {
	s, err := Find(ConfigDir(process.Environment(pid)), pid)
	if err != nil {
		return nil, err
	}
	says := &agents.Session{
		ID: s.ID, Activity: reducer.Unknown, Since: time.UnixMilli(s.StatusAt), WaitingFor: s.WaitingFor,
		// Older ones end their turn with it; and 2.1.332 shows its model twice why it may not stop.
		TakesContextAtStop: s.IsSince(2, 1, 197),
		Open: func(mode string) (delivery.Way, error) {
			s.Mode = mode
			return Way{Session: s}, s.MayTake()
		},
	}
	switch s.Status {
	case Idle, Shell:
		says.Activity = reducer.Idle
	case Busy:
		says.Activity = reducer.Thinking
	case Waiting:
		says.Activity = reducer.AwaitingInput
		if s.WaitingFor == "permission prompt" {
			says.Activity = reducer.Confirming
		}
	}
	return says, nil
}
