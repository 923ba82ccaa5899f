package presence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// RefreshSession ends a session if its rules say so, and pauses it if the agent's runner is gone. Every command that shows
// a session calls it, so that no daemon is needed; a running runner does the same and also stops the agent.
func RefreshSession(ctx context.Context, t *teamdir.Team, s *session.Session) (*session.Session, error) {
	agent := wire.Name(s.AgentID)
	state, err := t.State(agent)
	if err != nil || s.State != session.Active {
		return s, nil // of a retired agent, say: only people end it
	}
	c, _ := t.Config() // doctor reports its mistakes
	m := Look(ctx, t, Query{State: state}, agent)[0]
	if m.Err != nil {
		return s, nil
	}
	rules := c.SessionOf(agent).Rules()
	if slices.Contains([]reducer.Word{reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting}, m.State) {
		rules.WhenIdle = 0
	}
	apply := func(s *session.Session) error {
		now := time.Now()
		// Again under the team lock: a starting runner resumes the session under it while it holds the runner lock.
		running, err := t.Running(agent)
		isKnownOff, hadRunner := err == nil && !running, s.Notes.Owned || m.RunnerGone
		if isKnownOff && hadRunner && s.State == session.Active {
			return s.AutoPause(fmt.Sprintf("(the runner of %s is gone)", agent), now)
		}
		r := rules
		if running { // only the runner knows whether somebody types in the agent's terminal
			r.WhenIdle = 0
		}
		return r.Apply(s, state, now)
	}
	trial := *s
	if err := apply(&trial); err != nil || trial.State == s.State {
		return s, err
	}
	return t.Sessions().Change(ctx, s.SessionID, apply)
}
