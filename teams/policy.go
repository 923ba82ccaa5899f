package teams

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentteammail/atm/wire"
)

// Policy is who and what answers permission requests, and whether people talk to
// agents in sessions. A runner keeps the one of
// its start: team.toml lies where agents write. It is plain data, and the same
// after a way through JSON.
type Policy struct {
	Lead      wire.Name            `json:"lead,omitempty"`
	Approvers []wire.Name          `json:"approvers"` // null: not said
	People    []wire.Name          `json:"people,omitempty"`
	Roles     map[wire.Name]string `json:"roles,omitempty"`
	Rules     Rules                `json:"rules,omitempty"`
	Mute      bool                 `json:"mute,omitempty"` // nobody talks to agents in sessions
}

// Policy is what a plan says about answers and about what people say.
func (p *Plan) Policy() Policy {
	out := Policy{Lead: p.Lead, Approvers: slices.Clone(p.Approvers), Rules: slices.Clone(p.Rules), Mute: !p.Session.AllowHumanInput}
	for _, n := range slices.Sorted(maps.Keys(p.Members)) {
		m := p.Members[n]
		if m.Person {
			out.People = append(out.People, n)
		}
		if m.Role != "" {
			if out.Roles == nil {
				out.Roles = map[wire.Name]string{}
			}
			out.Roles[n] = m.Role
		}
	}
	return out
}

// Policy is what the roster says about who answers; it knows no rules, and
// nothing of sessions.
func (r *Roster) Policy() Policy {
	p := Plan{Session: SessionPlan{AllowHumanInput: true}, Lead: r.Lead, Approvers: r.Approvers, Members: map[wire.Name]MemberPlan{}}
	for n, m := range r.Members {
		p.Members[n] = MemberPlan{Person: m.Person, Role: m.Role}
	}
	return p.Policy()
}

// Equal reports whether two policies answer alike.
func (p Policy) Equal(q Policy) bool {
	return p.Lead == q.Lead && slices.Equal(p.Approvers, q.Approvers) && (p.Approvers == nil) == (q.Approvers == nil) &&
		slices.Equal(p.People, q.People) && maps.Equal(p.Roles, q.Roles) && slices.Equal(p.Rules, q.Rules) && p.Mute == q.Mute
}

// Decide is what the rules say to a request of an agent, in its role.
func (p Policy) Decide(agent wire.Name, tool, input string, cut bool) Decision {
	return p.Rules.Answer(Request{Agent: agent, Role: p.Roles[agent], Tool: tool, Input: input, Cut: cut})
}

// ErrNotYours is wrapped by the error for who may not answer.
var ErrNotYours = errors.New("not yours to answer")

// MayAnswer is nil if answerer may answer what asker asks, else says why not.
// inAgent: the answer comes from within an agent's environment. Nobody answers
// for themselves; an agent only as the lead; else those do whom team.toml names
// as approvers, where it names none people and the lead, and where it knows no
// people whoever sits at a terminal of their own.
func (p Policy) MayAnswer(asker, answerer wire.Name, inAgent bool) error {
	lead := answerer == p.Lead
	switch {
	case answerer == "":
		return fmt.Errorf("what %s asks is %w: nobody has said who answers", asker, ErrNotYours)
	case asker == answerer:
		return fmt.Errorf("what %s asks is %w: nobody answers for themselves", asker, ErrNotYours)
	case inAgent && !lead:
		return fmt.Errorf("what %s asks is %w: of agents only the lead answers%s", asker, ErrNotYours, p.leadIs())
	case p.Approvers != nil:
		if !slices.Contains(p.Approvers, answerer) {
			return fmt.Errorf("what %s asks is %w: approvers are %s", asker, ErrNotYours, join(p.Approvers))
		}
	case lead, len(p.People) == 0, slices.Contains(p.People, answerer):
	default:
		return fmt.Errorf("what %s asks is %w: people and the lead answer (%s)", asker, ErrNotYours, join(p.answerers()))
	}
	return nil
}

// Answerers are those who may answer what asker asks, as far as they are named.
func (p Policy) Answerers(asker wire.Name) []wire.Name {
	out := p.answerers()
	if p.Approvers != nil {
		out = slices.Clone(p.Approvers)
	}
	return slices.DeleteFunc(out, func(n wire.Name) bool { return n == asker })
}

func (p Policy) leadIs() string {
	if p.Lead == "" {
		return ", and team.toml names none"
	}
	return ", who is " + string(p.Lead)
}

// answerers are those who answer where no approvers are named.
func (p Policy) answerers() []wire.Name {
	out := slices.Clone(p.People)
	if p.Lead != "" && !slices.Contains(out, p.Lead) {
		out = append(out, p.Lead)
	}
	return out
}
