// Package policy decides which permission requests of an agent the rules of team.toml answer, and who may answer the
// rest.
//
// A runner saves the policy that it is started with and keeps to it, since agents can write team.toml.
//
// Begin with Rules.Decide. It reads no file and asks nobody: the runner does.
package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// Policy says what answers the permission requests of one agent and who may answer them, whether people may talk to it
// in sessions, and whose mail it is given. It survives a round trip through JSON unchanged.
type Policy struct {
	Lead      wire.Name   `json:"lead,omitempty"`
	Approvers []wire.Name `json:"approvers"` // null: team.toml names none
	People    []wire.Name `json:"people,omitempty"`
	Rules     Rules       `json:"rules,omitempty"` // those that are for this agent
	Mute      bool        `json:"mute,omitempty"`  // nobody may talk to it in sessions

	// From says whose mail the agent is given, by the words of team.toml for them: a name, or "@backend" with its members.
	// nil: everybody's.
	From map[string][]wire.Name `json:"from,omitempty"`

	// IsPartial says that it was saved by a version of atm that knows more, so that what is missing may be a rule that
	// denies or a condition. Then no rule allows anything, and no agent may answer.
	IsPartial bool `json:"-"`
}

// Partial returns the policy as far as it is known.
func (p Policy) Partial() Policy {
	p.IsPartial, p.Rules = true, slices.Clone(p.Rules)
	for i := range p.Rules {
		if r := &p.Rules[i]; r.Decision != Deny {
			r.Decision = Ask
		}
	}
	return p
}

// Equal reports whether two policies are the same.
func (p Policy) Equal(q Policy) bool {
	one, _ := json.Marshal(p)
	other, _ := json.Marshal(q)
	return bytes.Equal(one, other)
}

// DenyOnly returns the policy with only its deny rules. It applies when an agent starts another agent that no person
// has started before.
func (p Policy) DenyOnly() Policy {
	p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r Rule) bool { return r.Decision != Deny })
	return p
}

// TakesFrom reports whether the agent is given the mail of a sender. One of another host is alice@laptop.
func (p Policy) TakesFrom(sender wire.Name) bool {
	if p.From == nil {
		return true
	}
	for _, names := range p.From {
		if slices.Contains(names, sender) {
			return true
		}
	}
	return false
}

// ErrNotYours says that a member may not answer a question.
var ErrNotYours = errors.New("not yours to answer")

// CheckAnswerer returns an ErrNotYours with the reason if answerer may not answer asker's question. inAgent: the answer
// comes from an agent's environment. Nobody may answer for themselves, and an agent only if it is the lead. Otherwise
// the approvers may; without approvers in team.toml, people and the lead; without people as well, anybody at a
// terminal. A member of another host, alice@laptop, may answer only if approvers lists that name.
func (p Policy) CheckAnswerer(asker, answerer wire.Name, inAgent bool) error {
	isLead, why := answerer == p.Lead, ""
	switch {
	case answerer == "":
		why = "atm does not know who you are"
	case asker == answerer:
		why = "nobody may answer their own question"
	case inAgent && p.IsPartial:
		why = "another version of atm saved its policy, so only a person may answer"
	case inAgent && !isLead && p.Lead != "":
		why = "of the agents only the lead may answer: " + string(p.Lead)
	case inAgent && !isLead:
		why = "of the agents only the lead may answer, and team.toml names none"
	case p.Approvers == nil && strings.Contains(string(answerer), "@"):
		why = "from other hosts only approvers may answer, and team.toml names none"
	case p.Approvers != nil && !slices.Contains(p.Approvers, answerer):
		why = "only approvers may answer: " + join(p.Approvers)
	case p.Approvers == nil && !isLead && len(p.People) > 0 && !slices.Contains(p.People, answerer):
		why = "only people and the lead may answer: " + join(append(slices.Clone(p.People), p.Lead))
	default:
		return nil
	}
	return fmt.Errorf("the question of %s is %w: %s", asker, ErrNotYours, why)
}

// CheckActor returns why by may not act on agent, as verb says: stop, interrupt, type into it. An agent may act on itself,
// and on others only if it is the lead. Who has said no name may at a terminal; who has said one must be a person, or the
// lead, if team.toml names people.
func (p Policy) CheckActor(verb string, agent, by wire.Name, inAgent bool) error {
	isLead := by == p.Lead && by != ""
	switch {
	case isLead, by == agent:
		return nil
	case inAgent && p.Lead == "":
		return fmt.Errorf("an agent may %s others only as the team's lead, which team.toml names none of", verb)
	case inAgent:
		return fmt.Errorf("an agent may %s others only as the team's lead, who is %s", verb, p.Lead)
	case by != "" && len(p.People) > 0 && !slices.Contains(p.People, by):
		return fmt.Errorf("%s may not %s %s: only people and the lead may: %s", by, verb, agent, join(append(slices.Clone(p.People), p.Lead)))
	}
	return nil
}

// join lists names once each, without the empty one of a missing lead.
func join(names []wire.Name) string {
	var list []string
	for _, n := range names {
		if n != "" && !slices.Contains(list, string(n)) {
			list = append(list, string(n))
		}
	}
	return strings.Join(list, ", ")
}
