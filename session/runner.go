package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/jsonextra"
	"github.com/agentteammail/atm/wire"
)

// Binding is what a session records about the runner of its agent.
type Binding struct {
	Owned      bool            `json:"owned,omitzero"`       // a runner began it: it is completed with a run of its agent
	AutoPaused bool            `json:"auto_paused,omitzero"` // paused because the agent is off: the next run resumes it
	Ended      string          `json:"ended,omitzero"`       // the rule that ended it
	Extra      json.RawMessage `json:"-"`                    // an object of unknown members
}

// MarshalJSON writes the binding with its unknown members.
func (b Binding) MarshalJSON() ([]byte, error) { return wire.Marshal(b.object()) }

// UnmarshalJSON reads a binding, and keeps unknown members. The error is a *wire.DecodeError.
func (b *Binding) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, b.object()) }

func (b *Binding) object() any {
	type plain Binding // without the methods
	return jsonextra.Object((*plain)(b), &b.Extra)
}

// AutoPause pauses the session because its agent is off.
func (s *Session) AutoPause(why string, now time.Time) error {
	err := s.Move(Paused, why, now)
	if err == nil {
		s.Notes.Runner.AutoPaused = true
	}
	return err
}

// AttachOptions say what a runner wants of its agent's sessions.
type AttachOptions struct {
	Begin     bool  // begin a session if none is alive
	IsEngaged bool  // the agent works or somebody types in its terminal: that is activity
	Rules     Rules // a session that one of them ends is completed
}

// Attach is a runner's first call: it resumes the sessions of its agent that were paused because the agent was off, and
// begins one if wanted. Call it again after an error, and when a rule ends a session.
func (st *Store) Attach(ctx context.Context, agent wire.Name, o AttachOptions) error {
	isAnyAlive := false
	err := st.changeAlive(ctx, agent, func(s *Session) error {
		err := s.ApplyRules(o.Rules, now())
		if err != nil || !s.State.Alive() {
			return err
		}
		isAnyAlive = true
		if s.Notes.Runner.AutoPaused {
			return s.Move(Active, fmt.Sprintf("(%s runs again)", agent), now())
		}
		if s.State == Active && s.Notes.Runner.Owned && o.IsEngaged {
			s.touch(now())
		}
		return nil
	})
	if err == nil && !isAnyAlive && o.Begin {
		_, err = st.New(ctx, Options{Agent: agent, Alone: true, runner: Binding{Owned: true}})
	}
	return err
}

// Detach is a runner's last call. completed means that the agent ended by itself without an error: sessions that a
// runner began are completed, all others are paused until the agent runs again. how is logged: "bob was stopped".
func (st *Store) Detach(ctx context.Context, agent wire.Name, completed bool, how string) error {
	return st.changeAlive(ctx, agent, func(s *Session) error {
		switch {
		case s.State != Active:
			return nil
		case completed && s.Notes.Runner.Owned:
			return s.Move(Completed, "("+how+")", now())
		}
		return s.AutoPause("("+how+")", now())
	})
}

// changeAlive changes the sessions of an agent that are alive, one by one, the oldest first.
func (st *Store) changeAlive(ctx context.Context, agent wire.Name, f func(*Session) error) error {
	list, _, err := st.List()
	for _, s := range list {
		if !s.isAliveOf(agent) {
			continue
		}
		_, e := st.Change(ctx, s.SessionID, func(s *Session) error {
			if !s.State.Alive() { // it has just ended
				return nil
			}
			return f(s)
		})
		err = errors.Join(err, e)
	}
	return err
}

// AgentSessions reads the sessions of an agent that are alive, and those of before, so that a runner sees how they
// ended.
func (st *Store) AgentSessions(agent wire.Name, before []*Session) (out []*Session, err error) {
	list, _, err := st.List()
	if err != nil {
		return before, err
	}
	for _, s := range list {
		isKnown := slices.ContainsFunc(before, func(b *Session) bool { return b.SessionID == s.SessionID })
		if s.AgentID == string(agent) && (s.State.Alive() || isKnown) {
			out = append(out, s)
		}
	}
	return out, nil
}

// Modified returns when a session last changed, 1970 if there was never one. While it stays the same, nothing has
// changed. Zero means that this cannot be told yet: the clocks of file systems advance only every few milliseconds.
func (st *Store) Modified() time.Time {
	info, err := st.mail.Dir().Lstat(sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Unix(0, 0)
	}
	if err != nil || time.Since(info.ModTime()).Abs() < 100*time.Millisecond {
		return time.Time{}
	}
	return info.ModTime()
}
