// Package session keeps interactive sessions: conversations between people and an agent, with a goal, a log and drafts.
//
//	<team>/.sessions/<id>.json            one session that goes on; the id is its UUID
//	<team>/.archive/sessions/<id>.json    one that is over
//
// A file is the session as Trusted Autonomy writes it (InteractiveSession) without its messages, plus one member of ours, "atm".
// Unknown members are kept. It is changed under the team's lock and replaced in one step; when the session ends it moves to the
// archive, so that no look at the others opens it. A file that cannot be understood is refused with a *FileError and never
// overwritten.
//
// What was said is nowhere but in the agent's events and in its inbox, from where a Log reads it when somebody wants to see it.
// So output that nobody watches is not lost.
//
// A Store may be used by several goroutines at once, a Session and a Log by one.
//
// Begin with Open, then Store.New or Store.Get. Nothing here runs an agent: package cmd/internal/runner/sessions has the runner's
// part.
package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/jsonextra"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// NoGoal is the goal of a session that has none of its own. Any completed goal completes it.
const NoGoal wire.UUID = "00000000-0000-0000-0000-000000000000"

// Session is one session, as it was when it was read, and its file.
type Session struct {
	InteractiveSession
	Notes Notes           `json:"atm,omitempty"`
	Extra json.RawMessage `json:"-"` // an object of unknown members
}

// MarshalJSON writes the session with its unknown members.
func (s Session) MarshalJSON() ([]byte, error) { return wire.Marshal(s.object()) }

// UnmarshalJSON reads a session as its owner does, and keeps unknown members. The error is a *wire.DecodeError or
// wire.ErrNotObject.
func (s *Session) UnmarshalJSON(data []byte) error {
	err := foreign.CheckInteractiveSession(data)
	var read Session
	if err == nil {
		err = wire.Unmarshal(data, read.object())
	}
	if err == nil {
		*s = read
	}
	return err
}

func (s *Session) object() any {
	return jsonextra.Object(&struct {
		Theirs *plainSession `json:",embed"`
		Notes  *Notes        `json:"atm,omitempty"`
	}{(*plainSession)(&s.InteractiveSession), &s.Notes}, &s.Extra)
}

// Notes are what we keep of a session beyond its owner's members.
type Notes struct {
	After uint64 `json:"after,omitzero"` // the agent's last event before the session
	Owned bool   `json:"owned,omitzero"` // a runner began it: it is completed with a run of its agent
	Moves []Move `json:"moves,omitempty"`
}

// Move is a change of a session's state.
type Move struct {
	To   State     `json:"to"`
	At   time.Time `json:"at"`
	Why  string    `json:"why,omitzero"`  // "by alice", "(bob was stopped)"
	Auto bool      `json:"auto,omitzero"` // paused because the agent is off, until it runs again, or completed by a rule
}

// String returns the line of the session's log: Session paused by alice.
func (m Move) String() string {
	to := string(m.To)
	if m.To == Active {
		to = "resumed"
	}
	return strings.TrimSpace("Session " + to + " " + m.Why)
}

// Move moves the session to another state, and notes why: "by alice". It fails as Transition does.
func (s *Session) Move(to State, why string, now time.Time) error {
	return s.move(Move{To: to, At: now, Why: why})
}

// AutoPause pauses the session because its agent is off.
func (s *Session) AutoPause(why string, now time.Time) error {
	return s.move(Move{To: Paused, At: now, Why: why, Auto: true})
}

func (s *Session) move(m Move) error {
	m.At = later(s.UpdatedAt, m.At.UTC().Round(0)) // the clock may have been set back
	err := s.Transition(m.To, m.At)
	if err == nil {
		s.Notes.Moves = append(s.Notes.Moves, m)
	}
	return err
}

// last is the last change of the state; zero: there was none.
func (s *Session) last() (m Move) {
	if n := len(s.Notes.Moves); n > 0 {
		m = s.Notes.Moves[n-1]
	}
	return m
}

// IsAutoPaused reports whether the session is paused because its agent is off: the next run resumes it.
func (s *Session) IsAutoPaused() bool { return s.State == Paused && s.last().Auto }

// EndedByRule returns the rule that has completed the session, as Rules.Due gave it; "": none.
func (s *Session) EndedByRule() string {
	if m := s.last(); m.To == Completed && m.Auto {
		return strings.Trim(m.Why, "()")
	}
	return ""
}

// Rules say when a session ends by itself; the zero value: never. Runners and all commands that look at it apply them.
type Rules struct {
	WhenIdle time.Duration // nobody has said anything for so long, and the agent is in no turn; 0: never
	OnGoal   bool          // its goal is complete
}

// Apply completes a session if a rule says so, and notes which.
func (r Rules) Apply(s *Session, agent *reducer.State, now time.Time) error {
	if due := r.Due(s, agent, now); due != "" {
		return s.move(Move{To: Completed, At: now, Why: "(" + due + ")", Auto: true})
	}
	return nil
}

// Due returns the rule that completes a session now, by what its agent's events say; "": none.
func (r Rules) Due(s *Session, agent *reducer.State, now time.Time) string {
	quietSince := later(s.UpdatedAt, agent.HeardAt)
	switch {
	case s.State != Active:
	case r.OnGoal && s.hasReached(agent.Goals):
		return "goal_complete"
	case r.WhenIdle > 0 && !now.Before(quietSince.Add(r.WhenIdle)):
		return fmt.Sprintf("idle_timeout: %gs", r.WhenIdle.Seconds())
	}
	return ""
}

func (s *Session) hasReached(goals []reducer.Goal) bool {
	for _, g := range goals {
		isOurs := g.InSession == "" || g.InSession == string(s.SessionID)
		if isOurs && (s.GoalID == NoGoal || s.GoalID == g.ID) && !g.At.Before(s.CreatedAt) {
			return true
		}
	}
	return false
}

// now returns the time as it is written: UTC, without the monotonic clock.
func now() time.Time { return time.Now().UTC().Round(0) }
