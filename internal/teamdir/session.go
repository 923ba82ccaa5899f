package teamdir

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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
