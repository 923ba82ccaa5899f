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

// Policy says who and what answers permission requests, and whether people may
// talk to agents in sessions. It is plain data and survives JSON unchanged.
type Policy struct {
	Lead      wire.Name            `json:"lead,omitempty"`
	Approvers []wire.Name          `json:"approvers"` // null: team.toml names none
	People    []wire.Name          `json:"people,omitempty"`
	Roles     map[wire.Name]string `json:"roles,omitempty"`
	Rules     Rules                `json:"rules,omitempty"`
	Mute      bool                 `json:"mute,omitempty"` // nobody talks to agents in sessions
}

// Equal reports whether two policies decide alike.
func (p Policy) Equal(q Policy) bool {
	one, _ := json.Marshal(p)
	other, _ := json.Marshal(q)
	return bytes.Equal(one, other)
}

// Decide is what the rules decide about a request of an agent, in its role.
func (p Policy) Decide(q Request) Decision {
	q.Role = p.Roles[q.Agent]
	return p.Rules.Decide(q)
}

// DenyOnly is the policy without its rules that allow or ask. It is used when an
// agent starts another one that no person has started before.
func (p Policy) DenyOnly() Policy {
	p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r Rule) bool { return r.Decision != Deny })
	return p
}

// ErrNotYours is wrapped by the error for a member who may not answer.
var ErrNotYours = errors.New("not yours to answer")

// MayAnswer returns nil if answerer may answer what asker asks, else an ErrNotYours that says why not. inAgent: the
// answer comes from an agent's environment. Nobody answers for themselves. An agent answers only as the lead. Otherwise
// the approvers answer; where team.toml names none, people and the lead; and where it names no people either, anybody
// at a terminal. Somebody on another host, alice@laptop, answers only as an approver of that very name.
func (p Policy) MayAnswer(asker, answerer wire.Name, inAgent bool) error {
	isLead, why := answerer == p.Lead, ""
	switch {
	case answerer == "":
		why = "it is not known who answers"
	case asker == answerer:
		why = "nobody answers for themselves"
	case inAgent && !isLead && p.Lead != "":
		why = "of agents only the lead answers, who is " + string(p.Lead)
	case inAgent && !isLead:
		why = "of agents only the lead answers, and team.toml names none"
	case p.Approvers == nil && strings.Contains(string(answerer), "@"):
		why = "of other hosts only approvers answer, and team.toml names none"
	case p.Approvers != nil && !slices.Contains(p.Approvers, answerer):
		why = "approvers are " + join(p.Approvers)
	case p.Approvers == nil && !isLead && len(p.People) > 0 && !slices.Contains(p.People, answerer):
		why = "people and the lead answer (" + join(append(slices.Clone(p.People), p.Lead)) + ")"
	default:
		return nil
	}
	return fmt.Errorf("what %s asks is %w: %s", asker, ErrNotYours, why)
}

// join passes over a lead that nobody is.
func join(names []wire.Name) (list string) {
	for _, n := range names {
		if n != "" {
			list += ", " + string(n)
		}
	}
	return strings.TrimPrefix(list, ", ")
}
