package presence

import "github.com/agentteammail/atm/reducer"

// Stats counts a team's members as missiond's PTY manager does: running is starting, idle or busy; blocked counts as
// busy; stopped is off or in error. People and agents in an unknown state count in the total only.
type Stats struct {
	Total   int `json:"total"`
	Running int `json:"running"`
	Idle    int `json:"idle"`
	Busy    int `json:"busy"`
	Stopped int `json:"stopped"`
}

// StatsOf counts members.
func StatsOf(members []Member) Stats {
	s := Stats{Total: len(members)}
	for _, m := range members {
		switch m.State {
		case reducer.WordIdle:
			s.Idle++
		case reducer.WordBusy, reducer.WordBlocked:
			s.Busy++
		case reducer.WordOff, reducer.WordError:
			s.Stopped++
		default:
			if m.Running || m.State == reducer.WordStarting {
				s.Running++
			}
		}
	}
	s.Running += s.Idle + s.Busy
	return s
}
