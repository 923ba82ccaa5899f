package session

import (
	"fmt"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Rules say when a session ends by itself. The zero value: never. They are one
// table for all who apply them: a runner by its clock, and whoever looks.
type Rules struct {
	WhenIdle time.Duration // nobody has said anything for so long, and the agent is in no turn; 0: never
	OnGoal   bool          // its goal is complete
}

// Ends says why a session ends now, "" when it does not. busy is whether its
// agent works, or waits for an answer to a question of its own. One that is
// paused does not end.
func (r Rules) Ends(s *Session, busy bool, now time.Time) string {
	switch {
	case s.State != wire.SessionActive:
	case r.OnGoal && !s.GoalDone().IsZero():
		return "goal_complete"
	case r.WhenIdle > 0 && !busy && !now.Before(s.HeardAt().Add(r.WhenIdle)):
		return fmt.Sprintf("idle_timeout: %gs", r.WhenIdle.Seconds())
	}
	return ""
}

// End completes the session if a rule says so, and notes which.
func (s *Session) End(r Rules, busy bool, now time.Time) error {
	why := r.Ends(s, busy, now)
	if why == "" {
		return nil
	}
	s.run.Ended = why
	return s.Move(wire.SessionCompleted, "("+why+")", now)
}

// EndedBy is the rule by which the session has ended by itself; "" for one that
// somebody has ended, or that goes on.
func (s *Session) EndedBy() string { return s.run.Ended }
