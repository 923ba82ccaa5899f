package teamdir

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// ErrForbidden says that team.toml forbids sessions, or human input in them.
var ErrForbidden = errors.New("team.toml says")

// Sessions returns the team's interactive sessions.
func (t *Team) Sessions() *session.Store { return t.sessions }

// CheckInput returns why human input to an agent does not count; nil: it does. What aborts a session, or answers a draft,
// must have been sent with atm, by a member of the team that may do so. What a dropped file says of itself is not believed.
func (t *Team) CheckInput(agent wire.Name, m *wire.Message) error {
	in, _ := session.InputOf(m)
	act := policy.Answer
	if in.Kind == foreign.HumanAbort {
		act = policy.Abort
	} else if !in.IsVerdict() {
		return nil
	}
	isAgent, by := m.FromAgent()
	if m.From.Team != t.Name || m.From.Host != "" || by != (wire.Address{}) || !m.IsByCommand() {
		return fmt.Errorf("what %s says here does not count: it was not sent with a command of atm by a member of the team", m.From)
	}
	actor := policy.Actor{Name: m.From.Agent, IsAgent: isAgent}
	if running, _ := t.Running(m.From.Agent); running && m.Origin.Agent == wire.UnknownAgent { // whose processes are known
		actor.Name = ""
	}
	p, _, err := t.PolicyFor(agent)
	return cmp.Or(err, p.Check(act, agent, actor))
}

// CheckSessionsAllowed returns an ErrForbidden if team.toml sets enabled = false for sessions with a member.
func (t *Team) CheckSessionsAllowed(agent wire.Name) error {
	c, err := t.Config()
	if on := c.SessionOf(agent).Enabled; err == nil && on != nil && !*on {
		err = fmt.Errorf("sessions are off: %w enabled = false", ErrForbidden)
	}
	return err
}

// CheckHumanInput returns an error if team.toml forbids human input in sessions with a member, or has mistakes.
func (t *Team) CheckHumanInput(agent wire.Name) error {
	c, err := t.Config()
	if err == nil && c.SessionOf(agent).IsMute() {
		err = fmt.Errorf("%s accepts no input in sessions: %w allow_human_input = false", agent, ErrForbidden)
	}
	return err
}
