package teamdir

import (
	"cmp"
	"errors"
	"fmt"

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
	case in.IsVerdict() && (isForeign || by != (wire.Address{}) || !m.IsByCommand()):
		return fmt.Errorf("the draft of %s is %w: the answer was not given with atm approve or atm reject by a member", agent, policy.ErrNotYours)
	case in.IsVerdict():
		return cmp.Or(err, p.CheckAnswerer(agent, m.From.Agent, isInAgent))
	case in.Kind != foreign.HumanAbort:
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

// CheckHumanInput returns an error if team.toml forbids human input in sessions with a member, or has mistakes.
func (t *Team) CheckHumanInput(agent wire.Name) error {
	c, err := t.Config()
	if err == nil && !c.SessionOf(agent).AllowHumanInput {
		err = fmt.Errorf("%s accepts no input in sessions: %w %s allow_human_input = false", agent, ErrForbidden, c.SessionSection(agent))
	}
	return err
}
