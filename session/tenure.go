package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// tenure is what a session says of the runner of its agent.
type tenure struct {
	Kept   bool   `json:"begun,omitempty"`  // a runner has begun it: it goes with the runs of its agent
	Parked bool   `json:"parked,omitempty"` // paused since the agent is off: the next run goes on with it
	Lines  bool   `json:"lines,omitempty"`  // what the agent writes is kept line by line, so that its answers are among it
	Ended  string `json:"ended,omitempty"`  // the rule by which it has ended
}

func (t *tenure) read(raw json.RawMessage) error {
	var n *tenure
	if err := json.Unmarshal(raw, &n); err != nil || n == nil {
		return errors.New("must say begun, parked, lines and ended")
	}
	*t = *n
	return nil
}

// encode is the note; nil where there is nothing to say.
func (t tenure) encode() []byte {
	if t == (tenure{}) {
		return nil
	}
	// Nothing in it that could not be encoded.
	raw, _ := json.Marshal(t)
	return raw
}

// OfRunner reports whether a runner has begun the session, which then rests while
// its agent is off.
func (s *Session) OfRunner() bool { return s.run.Kept }

// Parked reports whether the session is paused because its agent is off, and
// goes on when that runs again.
func (s *Session) Parked() bool { return s.run.Parked }

// Park pauses a session because its agent is off.
func (s *Session) Park(why string, now time.Time) error {
	if err := s.Move(wire.SessionPaused, why, now); err != nil {
		return err
	}
	s.run.Parked = true
	return nil
}

// Takeover says how a runner takes up the sessions of its agent.
type Takeover struct {
	Begin bool  // one is begun where none goes on
	Lines bool  // what the agent writes is kept line by line
	Rules Rules // what has reached its goal meanwhile is not taken up
}

// TakeUp is what a runner does first with the sessions of its agent: those that
// rest since the agent was off go on, and where none is alive one is begun if
// that is wanted. It returns those that are alive; a file that is none is left
// out. After an error it may be called again.
func (st *Store) TakeUp(ctx context.Context, agent wire.Name, o Takeover) (alive []*Session, err error) {
	ids, err := st.of(agent)
	for _, id := range ids {
		s, bad := st.Change(ctx, id, func(s *Session) error {
			now := time.Now()
			if !s.State.Alive() {
				return nil
			}
			// It may have been quiet for long because nobody ran it.
			if err := s.End(Rules{OnGoal: o.Rules.OnGoal}, true, now); err != nil || !s.State.Alive() {
				return err
			}
			s.run.Lines = o.Lines
			if s.State == wire.SessionPaused && s.run.Parked {
				return s.Move(wire.SessionActive, fmt.Sprintf("(%s runs again)", agent), now)
			}
			if s.State == wire.SessionActive && s.run.Kept {
				s.touch(now.UTC().Round(0))
			}
			return nil
		})
		switch {
		case bad != nil:
			err = errors.Join(err, bad)
		case s.State.Alive():
			alive = append(alive, s)
		}
	}
	if len(alive) == 0 && o.Begin && err == nil {
		s, bad := st.New(ctx, Options{Agent: agent, Channel: st.freeTerminal(), run: tenure{Kept: true, Lines: o.Lines}})
		if bad != nil {
			return nil, bad
		}
		alive = append(alive, s)
	}
	return alive, err
}

// KeepLines notes of sessions whether what the agent writes is kept line by line,
// so that its answers are not kept beside it.
func (st *Store) KeepLines(ctx context.Context, ids []wire.UUID, on bool) (err error) {
	for _, id := range ids {
		_, bad := st.Change(ctx, id, func(s *Session) error {
			s.run.Lines = on
			return nil
		})
		err = errors.Join(err, bad)
	}
	return err
}

// of are the sessions of an agent that are alive, the oldest first. Files that are
// none are left out.
func (st *Store) of(agent wire.Name) (ids []wire.UUID, err error) {
	list, _, err := st.List()
	for _, s := range list {
		if s.AgentID == string(agent) && s.State.Alive() {
			ids = append(ids, s.SessionID)
		}
	}
	return ids, err
}

// freeTerminal is the first of cli:tty0, cli:tty1 and so on that no session
// which is alive has for its channel. Two that begin at once may get the same:
// it is a name, and nothing is found by it.
func (st *Store) freeTerminal() string {
	list, _, _ := st.List()
	for n := 0; ; n++ {
		name := fmt.Sprintf("cli:tty%d", n)
		if !slices.ContainsFunc(list, func(s *Session) bool { return s.State.Alive() && s.ChannelID == name }) {
			return name
		}
	}
}

// LetGo is what a runner does last: the sessions that runners have begun are
// over where the agent has left by itself and well, and rest otherwise. Those
// that people have begun stay as they are. how is behind it in the log: "bob was
// stopped".
func (st *Store) LetGo(ctx context.Context, agent wire.Name, well bool, how string) error {
	ids, err := st.of(agent)
	for _, id := range ids {
		_, bad := st.Change(ctx, id, func(s *Session) error {
			if !s.State.Alive() {
				return nil
			}
			s.run.Lines = false
			switch {
			case !s.run.Kept || s.State != wire.SessionActive:
				return nil
			case well:
				return s.Move(wire.SessionCompleted, "("+how+")", time.Now())
			}
			return s.Park("("+how+")", time.Now())
		})
		err = errors.Join(err, bad)
	}
	return err
}
