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
	"slices"

	"github.com/agentteammail/atm/wire"
)

// Policy says what answers the permission requests of one agent and who may answer them, whether people may talk to it
// in sessions, and whose mail it is given. It survives a round trip through JSON unchanged.
type Policy struct {
	Lead      wire.Name   `json:"lead,omitempty"`
	Approvers []wire.Name `json:"approvers"`        // null: team.toml names none
	People    []wire.Name `json:"people,omitempty"` // as team shows them
	Rules     Rules       `json:"rules,omitempty"`  // those that are for this agent
	Mute      bool        `json:"mute,omitempty"`   // nobody may talk to it in sessions

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
