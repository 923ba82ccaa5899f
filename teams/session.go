package teams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// ErrForbidden is wrapped where team.toml says that there are to be no sessions, or that
// nobody talks to agents in them.
var ErrForbidden = errors.New("team.toml says [session]")

// Sessions are the team's interactive sessions.
func (t *Team) Sessions() *session.Store { return &session.Store{Mail: t.Store} }

// CheckSessionsAllowed is nil unless team.toml says in so many words that there are to be
// no sessions with a member: where it does not speak of them people may begin one.
func (t *Team) CheckSessionsAllowed(agent wire.Name) error {
	c, err := t.Config()
	if on := c.SessionOf(agent).Enabled; err == nil && on != nil && !*on {
		err = fmt.Errorf("no session is begun: %w enabled = false", ErrForbidden)
	}
	return err
}

// checkHumanInput is nil unless team.toml says that nobody talks to a member in sessions, or cannot be understood.
func (t *Team) checkHumanInput(agent wire.Name) error {
	c, err := t.Config()
	if err == nil && !c.SessionOf(agent).AllowHumanInput {
		err = fmt.Errorf("nothing is said to agents in sessions: %w allow_human_input = false", ErrForbidden)
	}
	return err
}

// HoldReason says why an unread message is kept from an agent for now, and what to do: ""
// when it is not. It is about what reaches the agent unasked; atm read shows the message.
func (t *Team) HoldReason(m *wire.Message, agent wire.Name) string {
	if m.Kind() != wire.TypeHumanInput {
		return ""
	}
	muted, because := t.isMuted(agent)
	list, _, _ := t.Sessions().List() // what cannot be read keeps nothing back
	list = slices.DeleteFunc(list, func(s *session.Session) bool { return s.AgentID != string(agent) })
	why, paused := session.Withheld(m, list, muted)
	if paused != "" {
		return fmt.Sprintf("%s, and what is said in it waits: atm session resume %s", why, wire.ID(paused).Short(6))
	}
	if why != "" {
		why = fmt.Sprintf("%s (%s); %s gets it by atm read alone", why, because, agent)
	}
	return why
}

// isMuted reports whether nobody talks to an agent in sessions, and why: as it was when
// the agent's runner started, else as team.toml says. What cannot be read allows nothing.
func (t *Team) isMuted(agent wire.Name) (muted bool, because string) {
	const says = "team.toml: allow_human_input = false"
	running, _ := t.Running(agent)
	if saved, ok, _ := t.SavedPolicy(agent); running && ok {
		return saved.Mute, says
	}
	c, err := t.Config()
	if err != nil {
		return true, fmt.Sprintf("it is not known whether team.toml allows it: %v", err)
	}
	return !c.SessionOf(agent).AllowHumanInput, says
}

// RefreshSession brings a session up to what its agent's events say, ends it where the plan says so, and pauses it
// where the agent's runner is gone. Every command that looks at a session calls it, so that no daemon is needed. (A
// runner that lives does the same by its clock, and stops the agent.)
func (t *Team) RefreshSession(ctx context.Context, s *session.Session) (*session.Session, error) {
	if !s.State.Alive() {
		return s, nil
	}
	agent := wire.Name(s.AgentID)
	plan, _ := t.Config() // doctor names its mistakes
	m, err := t.Summary(agent)
	busy := err == nil && slices.Contains([]reducer.Word{reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting}, m.State)
	return t.Sessions().Change(ctx, s.SessionID, func(s *session.Session) error {
		now := time.Now()
		// Asked under the team's lock, and not before: a runner that starts takes the
		// session up under this lock while it holds its own.
		running, err := t.Running(agent)
		if err == nil && !running && (s.OwnedByRunner() || m.RunnerGone) && s.State == wire.SessionActive {
			return s.AutoPause(fmt.Sprintf("(the runner of %s is gone)", agent), now)
		}
		// A runner alone knows whether somebody types in the agent's terminal.
		return s.ApplyRules(plan.SessionOf(agent).Rules(), busy || running, now)
	})
}

// SessionInput is something that a member says in a session.
type SessionInput struct {
	From   *mailbox.Box
	Input  wire.HumanInput
	Origin *wire.Origin

	check func() error // nil: nothing stands against it; asked under the team's lock
}

// SessionResult is what came of it.
type SessionResult struct {
	Message *wire.Message
	Session *session.Session // as it is now; nil: of no session, or not known
}

// Say delivers what a member says in a session to the session's agent, durably, and notes it in the log. An abort ends
// the session as well, in the same step; nothing else may be said in a session that is over: a *wire.SessionError.
func (t *Team) Say(ctx context.Context, id wire.UUID, in SessionInput) (out SessionResult, err error) {
	isAbort := in.Input.Kind == "abort"
	out.Session, err = t.Sessions().Change(ctx, id, func(s *session.Session) error {
		agent := wire.Name(s.AgentID)
		var err error
		if isAbort {
			trial := s.InteractiveSession
			err = trial.Transition(wire.SessionAborted, time.Now())
		} else if err = t.checkHumanInput(agent); err == nil && !s.State.Alive() {
			short := wire.ID(s.SessionID).Short(6)
			err = &wire.SessionError{Reason: fmt.Sprintf("session %s is %s: nothing is said to it any more", short, s.State)}
		}
		if err == nil && in.check != nil {
			err = in.check()
		}
		if err != nil {
			return err
		}
		out.Message, err = t.deliverInput(ctx, id, agent, in)
		// An agent that is gone cannot be told that its session is over.
		if err != nil && !(isAbort && errors.Is(err, mailbox.ErrNoAgent)) {
			return err
		}
		if out.Message != nil {
			input, _ := session.InputOf(out.Message)
			s.AddInput(input)
		}
		if isAbort {
			return s.Move(wire.SessionAborted, "by "+string(in.From.Agent()), time.Now())
		}
		return nil
	})
	if err != nil && out.Message != nil { // it was delivered, and the next look notes it
		out.Session, err = nil, nil
	}
	return out, err
}

// deliverInput delivers human input to an agent; nil where it could not.
func (t *Team) deliverInput(ctx context.Context, id wire.UUID, agent wire.Name, in SessionInput) (*wire.Message, error) {
	m, err := session.Message(id, in.Input)
	if err != nil {
		return nil, err
	}
	m.Origin = in.Origin
	to := []wire.Address{{Agent: agent, Team: t.Name}}
	if err := t.root.Send(ctx, &Outgoing{From: in.From, To: to, Message: m}); err != nil {
		return nil, err
	}
	return m, nil
}
