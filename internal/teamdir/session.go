package teamdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// ErrForbidden says that team.toml forbids sessions, or human input in them.
var ErrForbidden = errors.New("team.toml says")

// Sessions returns the team's interactive sessions.
func (t *Team) Sessions() *session.Store { return t.sessions }

// CheckInput returns why human input to an agent does not count; nil: it does. What approves or rejects a draft must have
// been sent with atm, by a member of the team that may answer the agent's questions. An abort counts as its sender's stop
// would, also as a dropped file: with no name it is from "drop".
func (t *Team) CheckInput(agent wire.Name, m *wire.Message) error {
	in, _ := session.InputOf(m)
	isInAgent, by := m.FromAgent()
	isForeign := m.From.Team != t.Name || m.From.Host != ""
	p, _, err := t.PolicyFor(agent)
	switch {
	case in.IsVerdict() && (isForeign || by != (wire.Address{}) || m.Origin == nil || m.Origin.Via != "cli"):
		return fmt.Errorf("the draft of %s is %w: the answer was not given with atm approve or atm reject by a member", agent, policy.ErrNotYours)
	case in.IsVerdict():
		return cmp.Or(err, p.CheckAnswerer(agent, m.From.Agent, isInAgent))
	case in.Kind != "abort":
		return nil
	case isForeign || by.Team != "" && by.Team != t.Name:
		return fmt.Errorf("%s may not stop %s: it is of another team", m.From, agent)
	}
	return cmp.Or(err, p.CheckActor("stop", agent, cmp.Or(by.Agent, m.From.Agent), isInAgent))
}

// CheckSessionsAllowed returns an ErrForbidden if team.toml sets enabled = false for sessions with a member.
func (t *Team) CheckSessionsAllowed(agent wire.Name) error {
	c, err := t.Config()
	if on := c.SessionOf(agent).Enabled; err == nil && on != nil && !*on {
		err = fmt.Errorf("sessions are off: %w %s enabled = false", ErrForbidden, c.SessionSection(agent))
	}
	return err
}

// checkHumanInput returns an error if team.toml forbids human input in sessions with a member, or has mistakes.
func (t *Team) checkHumanInput(agent wire.Name) error {
	c, err := t.Config()
	if err == nil && !c.SessionOf(agent).AllowHumanInput {
		err = fmt.Errorf("%s accepts no input in sessions: %w %s allow_human_input = false", agent, ErrForbidden, c.SessionSection(agent))
	}
	return err
}

// A Hold says why an unread message is withheld from an agent for now. The zero Hold: it is not.
type Hold struct {
	Why     string
	Because string    // of Why
	Paused  wire.UUID // the session that it waits for to be resumed
}

// HoldReason returns why an unread message is withheld from an agent for now. Only handing it over is withheld: atm read
// shows the message.
func (t *Team) HoldReason(m *wire.Message, agent wire.Name) (h Hold) {
	if m.Kind() != wire.TypeHumanInput {
		return h
	}
	muted, because := t.isMuted(agent)
	list, _, _ := t.Sessions().List() // an unreadable session withholds nothing
	list = slices.DeleteFunc(list, func(s *session.Session) bool { return s.AgentID != string(agent) })
	if h.Why, h.Paused = session.WithholdReason(m, list, muted); h.Why != "" && h.Paused == "" {
		h.Because = because
	}
	return h
}

// isMuted reports whether human input to an agent is forbidden, by the policy of its runner, else by team.toml, and
// why. A team.toml with mistakes forbids it.
func (t *Team) isMuted(agent wire.Name) (muted bool, because string) {
	var p policy.Policy
	var err error
	if running, _ := t.Running(agent); running {
		p, _, err = t.PolicyFor(agent)
	} else {
		p, err = t.PolicyNow(agent)
	}
	if err != nil {
		return true, fmt.Sprintf("atm cannot tell whether team.toml allows it: %v", err)
	}
	return p.Mute, "team.toml: allow_human_input = false"
}

// RefreshSession updates a session from its agent's events, ends it if its rules say so, and pauses it if the agent's
// runner is gone. Every command that shows a session calls it, so that no daemon is needed; a running runner does the
// same and also stops the agent.
func (t *Team) RefreshSession(ctx context.Context, s *session.Session) (*session.Session, error) {
	if !s.State.Alive() {
		return s, nil
	}
	agent := wire.Name(s.AgentID)
	c, _ := t.Config() // doctor reports its mistakes
	m, err := t.Summary(agent)
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

// SessionInput is human input to a session.
type SessionInput struct {
	From   *maildir.Box
	Input  foreign.HumanInput
	Origin *wire.Origin // nil: a command's

	check func() error // called under the team lock; nil: no check
}

// SessionResult is the result of human input.
type SessionResult struct {
	Message *wire.Message
	To      Recipient        // what became of the message
	Session *session.Session // after the input; nil: there is none, or it is unknown
}

// SendInput delivers human input to a session's agent durably and adds it to the session. An abort also ends the
// session, in the same step. Other input to a session that has ended is refused with a *session.Error.
func (t *Team) SendInput(ctx context.Context, id wire.UUID, in SessionInput) (out SessionResult, err error) {
	isAbort := in.Input.Kind == "abort"
	to, push := &Recipient{}, func() {}
	out.Session, err = t.Sessions().Change(ctx, id, func(s *session.Session) error {
		agent := wire.Name(s.AgentID)
		var err error
		if isAbort {
			trial := s.InteractiveSession
			err = trial.Transition(session.Aborted, time.Now())
		} else if err = t.checkHumanInput(agent); err == nil && !s.State.Alive() {
			short := wire.ID(s.SessionID).Short(6)
			err = &session.Error{Reason: fmt.Sprintf("session %s is %s and accepts no more input", short, s.State)}
		}
		if err == nil && in.check != nil {
			err = in.check()
		}
		if err != nil {
			return err
		}
		out.Message, to, push, err = t.storeInput(ctx, id, agent, in)
		if err != nil && !(isAbort && errors.Is(err, maildir.ErrNoAgent)) { // the session of a retired agent can be aborted
			return err
		}
		if out.Message != nil {
			input, _ := session.InputOf(out.Message)
			s.AddInput(input)
		}
		if isAbort {
			return s.Move(session.Aborted, "by "+string(in.From.Agent()), time.Now())
		}
		return nil
	})
	push()
	out.To = *to
	if err != nil && out.Message != nil { // it was delivered: the next refresh adds it to the session
		out.Session, err = nil, nil
	}
	return out, err
}

// storeInput delivers human input under the lock that its caller holds. push is for later, as in Root.store, and never nil.
func (t *Team) storeInput(ctx context.Context, id wire.UUID, agent wire.Name, in SessionInput) (m *wire.Message, to *Recipient, push func(), err error) {
	to, push = &Recipient{}, func() {}
	m, err = session.Message(id, in.Input)
	if err == nil {
		m.Origin, m.From = orCommand(in.Origin), in.From.Address()
		err = t.CheckInput(agent, m) // else it would be sent, and not count
		if _, counts := t.Sessions().InputOf(agent, m); err == nil && !counts {
			err = &session.Error{Reason: fmt.Sprintf("%s speaks in its own session with events, not as a person", agent)}
		}
	}
	if err == nil {
		to, push, err = t.storeFor(ctx, in.From, agent, m)
	}
	if err != nil {
		m = nil
	}
	return m, to, push, err
}
