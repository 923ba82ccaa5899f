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
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

// Sessions are the team's interactive sessions.
func (t *Team) Sessions() *session.Store { return &session.Store{Mail: t.Store} }

// ErrNoSessions is wrapped where team.toml says that there are to be no
// sessions.
var ErrNoSessions = errors.New("team.toml says [session] enabled = false")

// ErrNoHumanInput is wrapped where team.toml says that nobody talks to agents
// in sessions.
var ErrNoHumanInput = errors.New("team.toml says [session] allow_human_input = false")

// MayBegin is nil unless team.toml says in so many words that there are to be
// no sessions: where it does not speak of them people may begin one.
func (t *Team) MayBegin() error {
	c, err := t.Config()
	if err != nil {
		return err
	}
	if c.Session.Forbidden {
		return fmt.Errorf("no session is begun: %w", ErrNoSessions)
	}
	return nil
}

// MayInput is nil unless team.toml says that nobody talks to agents in sessions,
// or cannot be understood.
func (t *Team) MayInput() error {
	p, err := t.Config()
	if err != nil {
		return err
	}
	if !p.Session.AllowHumanInput {
		return fmt.Errorf("nothing is said to agents in sessions: %w", ErrNoHumanInput)
	}
	return nil
}

// Withheld says why a message is kept from an agent for now although it is
// unread, and what to do: "" when it is not. It is about what goes to the agent
// unasked; who reads its mail gets it.
func (t *Team) Withheld(m *wire.Message, agent wire.Name) string {
	if m.Kind() != wire.TypeHumanInput {
		return ""
	}
	mute, because := t.mute(agent)
	list, _, _ := t.Sessions().List() // what cannot be read keeps nothing back
	list = slices.DeleteFunc(list, func(s *session.Session) bool { return s.AgentID != string(agent) })
	why, paused := session.Withheld(m, list, mute)
	switch {
	case why == "":
		return ""
	case paused != "":
		return fmt.Sprintf("%s, and what is said in it waits: atm session resume %s", why, wire.ID(paused).Short(6))
	}
	return fmt.Sprintf("%s (%s); %s gets it by atm read alone", why, because, agent)
}

// mute reports whether nobody talks to an agent in sessions, and why: as it was
// when the agent's runner started, for that one abides by it as well, and else as
// team.toml says. What cannot be read allows nothing.
func (t *Team) mute(agent wire.Name) (mute bool, because string) {
	const said = "team.toml: allow_human_input = false"
	if running, err := t.Running(agent); err == nil && running {
		if kept, ok, err := t.SavedPolicy(agent); err == nil && ok {
			return kept.Mute, said
		}
	}
	plan, err := t.Config()
	if err != nil {
		return true, fmt.Sprintf("it is not known whether team.toml allows it: %v", err)
	}
	return !plan.SessionOf(agent).AllowHumanInput, said
}

// Tend brings a session up to what its agent's events say, ends it where the
// plan says so, lets it rest where a runner has begun it and is gone without a
// word, and writes what is new. It is the part of auto_exit_on that needs no
// daemon: whoever looks at a session tends it. (A runner that lives does the same
// by its clock, and stops the agent.)
func (t *Team) Tend(ctx context.Context, id wire.UUID, plan *config.Session) (*session.Session, error) {
	st := t.Sessions()
	s, err := st.Get(id)
	if err != nil || !s.State.Alive() {
		return s, err
	}
	agent := wire.Name(s.AgentID)
	busy := plan.ExitWhenIdle > 0 && t.engaged(agent)
	return st.Change(ctx, id, func(s *session.Session) error {
		now := time.Now()
		// Asked under the lock, and not before: one that starts takes it up under
		// this lock while it holds its own.
		running, err := t.Running(agent)
		if err == nil && !running && s.OwnedByRunner() && s.State == wire.SessionActive {
			return s.AutoPause(fmt.Sprintf("(the runner of %s is gone)", agent), now)
		}
		// A runner alone knows whether somebody types in the agent's terminal.
		return s.ApplyRules(plan.Rules(), busy || running, now)
	})
}

// engaged reports whether an agent works, waits for an answer to a question of
// its own, or has not come to its prompt yet.
func (t *Team) engaged(agent wire.Name) bool {
	m, err := t.Glance(agent)
	return err == nil && (m.State == reducer.WordBusy || m.State == reducer.WordBlocked || m.State == reducer.WordStarting)
}

// Saying is something that a member says to a session.
type Saying struct {
	From   *mailbox.Box
	Input  wire.HumanInput
	Origin *wire.Origin
	Person bool // see Outgoing
}

// Said is what came of it.
type Said struct {
	Message  *wire.Message
	Session  *session.Session // as it is now; nil: of no session
	Unlogged error            // it was delivered, and the session's log could not be written
}

// Say delivers what a member says to a session's agent, durably, and notes it in
// the log. An abort ends the session as well, in the same step; nothing else may
// be said to a session that is over: a *wire.SessionError.
func (t *Team) Say(ctx context.Context, id wire.UUID, say Saying) (out Said, err error) {
	return t.say(ctx, id, say, nil)
}

// say is Say after check, which is asked under the team's lock.
func (t *Team) say(ctx context.Context, id wire.UUID, say Saying, check func() error) (out Said, err error) {
	abort := say.Input.Kind == "abort"
	if !abort {
		if err := t.MayInput(); err != nil {
			return out, err
		}
	}
	s, err := t.Sessions().Change(ctx, id, func(s *session.Session) error {
		trial := s.InteractiveSession
		switch {
		case abort:
			if err := trial.Transition(wire.SessionAborted, time.Now()); err != nil {
				return err
			}
		case !s.State.Alive():
			return &wire.SessionError{Reason: fmt.Sprintf("session %s is %s: nothing is said to it any more", short(id), s.State)}
		}
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		m, err := t.tellAgent(ctx, id, wire.Name(s.AgentID), say)
		// An agent that is gone cannot be told that its session is over.
		if err != nil && !(abort && errors.Is(err, mailbox.ErrNoAgent)) {
			return err
		}
		if out.Message = m; m != nil {
			in, _ := session.InputOf(m)
			s.AddInput(in)
		}
		if abort {
			return s.Move(wire.SessionAborted, "by "+string(say.From.Agent()), time.Now())
		}
		return nil
	})
	switch {
	case err == nil:
		out.Session = s
	case out.Message != nil:
		out.Unlogged, err = err, nil
	}
	return out, err
}

// tellAgent delivers human input to an agent.
func (t *Team) tellAgent(ctx context.Context, id wire.UUID, agent wire.Name, say Saying) (*wire.Message, error) {
	m, err := session.Message(id, say.Input)
	if err != nil {
		return nil, err
	}
	m.Origin = say.Origin
	o := &Outgoing{From: say.From, To: []wire.Address{{Agent: agent, Team: t.Name}}, Message: m, Person: say.Person}
	if err := t.root.Prepare(o); err != nil {
		return nil, err
	}
	if len(o.Failed) > 0 {
		return nil, o.Failed[0].Err
	}
	mailbox.Deliver(ctx, o.Post)
	return m, o.Post.Outcomes[0].Err
}

func short(id wire.UUID) string { return wire.ID(id).Short(6) }
