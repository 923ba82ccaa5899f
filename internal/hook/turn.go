package hook

import (
	"strings"

	"github.com/agentteammail/atm/reducer"
)

// Turn is what the fold of an agent's events says about one session.
type Turn struct {
	ID       string // of the current or last turn
	Open     bool
	Anew     int    // how often it went on after a hook called it over
	Blocked  bool   // a permission dialog is open
	Tool     string // that it is about, where known
	Retrying bool   // after an error of the model's API
}

// TurnOf is what a fold says about one session; "" is the one that is shown.
func TurnOf(s *reducer.State, session string) Turn {
	t := s.Turn()
	for i := range s.Turns {
		if session != "" && s.Turns[i].Session == session {
			t = &s.Turns[i]
		}
	}
	if session != "" && t.Session != session {
		return Turn{}
	}
	out := Turn{ID: t.ID, Open: t.Status == reducer.TurnBusy, Anew: t.Reopened, Blocked: t.Activity == reducer.Confirming,
		Retrying: strings.HasPrefix(t.Detail, retrying)}
	if w := t.Waiting(); w != nil {
		out.Tool = w.Tool
	}
	return out
}
