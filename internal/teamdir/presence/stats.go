package presence

import (
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire/foreign"
)

// StatsOf counts members as missiond's PTY manager does. One that runs in an unknown state counts as one that starts.
func StatsOf(members []Member) foreign.ManagerStats {
	var states []reducer.Word
	for _, m := range members {
		if m.Running && m.State == reducer.WordUnknown {
			m.State = reducer.WordStarting
		}
		states = append(states, m.State)
	}
	return foreign.StatsOf(states...)
}
