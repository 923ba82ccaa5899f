package presence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// RefreshSession updates a session from its agent's events, ends it if its rules say so, and pauses it if the agent's
// runner is gone. Every command that shows a session calls it, so that no daemon is needed; a running runner does the
// same and also stops the agent.
func RefreshSession(ctx context.Context, t *teamdir.Team, s *session.Session) (*session.Session, error) {
	if !s.State.Alive() {
		return s, nil
	}
	agent := wire.Name(s.AgentID)
	c, _ := t.Config() // doctor reports its mistakes
	m, err := Summary(ctx, t, agent)
	busy := err == nil && slices.Contains([]reducer.Word{reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting}, m.State)
	return t.Sessions().Change(ctx, s.SessionID, func(s *session.Session) error {
		now := time.Now()
		// Under the team lock: a starting runner resumes the session under it while it holds the runner lock.
		running, err := t.Running(agent)
		isKnownOff, hadRunner := err == nil && !running, s.Notes.Runner.Owned || m.RunnerGone
		if isKnownOff && hadRunner && s.State == session.Active {
			return s.AutoPause(fmt.Sprintf("(the runner of %s is gone)", agent), now)
		}
		rules := c.SessionOf(agent).Rules()
		if busy || running { // only the runner knows whether somebody types in the agent's terminal
			rules.WhenIdle = 0
		}
		return s.ApplyRules(rules, now)
	})
}

// ArchiveEvents moves a member's old events to the archive. Sessions are updated before that, so that they need not read
// the archive.
func ArchiveEvents(ctx context.Context, t *teamdir.Team, name wire.Name, before time.Time, dry bool) (moved keep.Moved, err error) {
	sessions, _, err := t.Sessions().List()
	for _, s := range sessions {
		if err == nil && !dry && s.AgentID == string(name) {
			_, err = RefreshSession(ctx, t, s)
		}
	}
	if err == nil {
		moved.Events, moved.Bytes, err = t.Box(name).Log().Archive(ctx, before, dry)
	}
	return moved, err
}
