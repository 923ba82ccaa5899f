package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
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
	return p.Lead == q.Lead && slices.Equal(p.Approvers, q.Approvers) && (p.Approvers == nil) == (q.Approvers == nil) &&
		slices.Equal(p.People, q.People) && maps.Equal(p.Roles, q.Roles) && slices.Equal(p.Rules, q.Rules) && p.Mute == q.Mute
}

// Decide is what the rules decide about a request of an agent, in its role.
func (p Policy) Decide(agent wire.Name, tool, input string, cut bool) Decision {
	return p.Rules.Decide(Request{Agent: agent, Role: p.Roles[agent], Tool: tool, Input: input, Cut: cut})
}

// DenyOnly is the policy without its rules that allow or ask. It is used when an
// agent starts another one that no person has started before.
func (p Policy) DenyOnly() Policy {
	p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r Rule) bool { return r.Decision != Deny })
	return p
}

// ErrNotYours is wrapped by the error for a member who may not answer.
var ErrNotYours = errors.New("not yours to answer")

// MayAnswer returns nil if answerer may answer what asker asks, else an
// ErrNotYours that says why not. inAgent: the answer comes from an agent's
// environment. Nobody answers for themselves. An agent answers only as the lead.
// Otherwise the approvers answer; where team.toml names none, people and the
// lead; and where it names no people either, anybody at a terminal.
func (p Policy) MayAnswer(asker, answerer wire.Name, inAgent bool) error {
	isLead := answerer == p.Lead
	refuse := func(why string) error { return fmt.Errorf("what %s asks is %w: %s", asker, ErrNotYours, why) }
	if answerer == "" {
		return refuse("it is not known who answers")
	}
	if asker == answerer {
		return refuse("nobody answers for themselves")
	}
	if inAgent && !isLead {
		lead := ", and team.toml names none"
		if p.Lead != "" {
			lead = ", who is " + string(p.Lead)
		}
		return refuse("of agents only the lead answers" + lead)
	}
	if p.Approvers != nil {
		if !slices.Contains(p.Approvers, answerer) {
			return refuse("approvers are " + join(p.Approvers))
		}
		return nil
	}
	if isLead || len(p.People) == 0 || slices.Contains(p.People, answerer) {
		return nil
	}
	return refuse("people and the lead answer (" + join(p.peopleAndLead()) + ")")
}

// Answerers are those who may answer what asker asks, as far as they are named.
func (p Policy) Answerers(asker wire.Name) []wire.Name {
	out := p.peopleAndLead()
	if p.Approvers != nil {
		out = slices.Clone(p.Approvers)
	}
	return slices.DeleteFunc(out, func(n wire.Name) bool { return n == asker })
}

func (p Policy) peopleAndLead() []wire.Name {
	out := slices.Clone(p.People)
	if p.Lead != "" && !slices.Contains(out, p.Lead) {
		out = append(out, p.Lead)
	}
	return out
}

func join(names []wire.Name) string {
	s := make([]string, len(names))
	for i, n := range names {
		s[i] = string(n)
	}
	return strings.Join(s, ", ")
}

// maxSaved bounds a saved policy.
const maxSaved = 1 << 20

func savedFile(agent wire.Name) string { return string(agent) + "/run/policy.json" }

// Save saves the policy of an agent's runner that is being started, in the
// directory of the agent's team.
func Save(team *durable.Root, agent wire.Name, p Policy) error {
	if err := team.Mkdir(string(agent) + "/run"); err != nil {
		return err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return team.Replace(savedFile(agent), append(data, '\n'), false)
}

// Saved returns the policy that an agent's runner was started with; ok is false
// when none is saved that can be read.
func Saved(team *durable.Root, agent wire.Name) (p Policy, ok bool, err error) {
	data, err := team.ReadFile(savedFile(agent), maxSaved)
	if errors.Is(err, fs.ErrNotExist) {
		return Policy{}, false, nil
	}
	if err != nil {
		return Policy{}, false, err
	}
	if json.Unmarshal(data, &p) != nil {
		return Policy{}, false, nil
	}
	return p, true, nil
}
