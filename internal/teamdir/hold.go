package teamdir

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// A Hold says why an unread message is withheld from an agent for now. The zero Hold: it is not.
type Hold struct {
	Why     string
	Because string    // of Why
	Paused  wire.UUID // the session that it waits for to be resumed
}

// HoldReason returns why an unread message is withheld from an agent for now. Only handing it over is withheld: atm read
// shows the message.
func (t *Team) HoldReason(m *wire.Message, agent wire.Name) Hold { return t.Holds(agent)(m) }

// Holds is HoldReason for many messages, by what the files say now.
func (t *Team) Holds(agent wire.Name) func(*wire.Message) Hold {
	p, unknown := t.policyInForce(agent)
	sessions := sync.OnceValue(func() []*session.Session {
		all, _ := t.Sessions().Of(agent) // an unreadable session withholds nothing
		return all
	})
	return func(m *wire.Message) (h Hold) {
		if h.Why = t.WhyKept(m, agent, p); h.Why != "" || m.Kind() != wire.TypeHumanInput {
			return h
		}
		h.Why, h.Paused = session.WithholdReason(m, sessions(), p.Mute || unknown != nil) // a team.toml with mistakes forbids it
		switch {
		case h.Why == "" || h.Paused != "":
		case unknown != nil:
			h.Because = fmt.Sprintf("atm cannot tell whether team.toml allows it: %v", unknown)
		default:
			h.Because = "team.toml: allow_human_input = false"
		}
		return h
	}
}

// policyInForce is that of the agent's runner, else that of team.toml. With an error it is what is known of it.
func (t *Team) policyInForce(agent wire.Name) (p policy.Policy, err error) {
	if running, _ := t.Running(agent); running {
		p, _, err = t.PolicyFor(agent)
		return p, err
	}
	if p, err = t.PolicyNow(agent); err != nil {
		atStart, _, _ := t.PolicyFor(agent) // of the program of a person
		p.From = atStart.From
	}
	return p, err
}

// WhyKept says why mail is kept from an agent, "" if it is not: by whose mail the agent takes. What atm itself sends always
// comes, acks, and answers to what the agent has sent; and an abort that counts, which is no mail.
func (t *Team) WhyKept(m *wire.Message, agent wire.Name, p policy.Policy) string {
	in, isInput := t.Sessions().InputOf(agent, m)
	isForeign := func(a wire.Address) bool { return a != t.Box(agent).Address() && !p.TakesFrom(t.NameOf(a)) }
	if m.IsReserved() || isInput && in.Kind == foreign.HumanAbort || !slices.ContainsFunc(senders(m), isForeign) || t.answers(m, agent) {
		return ""
	}
	return fmt.Sprintf("%s takes mail from %s only", agent, listed(slices.Sorted(maps.Keys(p.From))))
}

// NotKept returns what selects the mail that is not kept from a member; nil: all of it.
func (t *Team) NotKept(agent wire.Name) func(*wire.Item) bool {
	p, _ := t.policyInForce(agent)
	if p.From == nil {
		return nil
	}
	return func(it *wire.Item) bool { return t.WhyKept(it.Message, agent, p) == "" }
}

// senders are those by whom a message is judged: its sender, and the member whose process sent it in that one's name.
func senders(m *wire.Message) []wire.Address {
	if _, by := m.FromAgent(); by != (wire.Address{}) {
		return []wire.Address{m.From, by}
	}
	return []wire.Address{m.From}
}

// AddressOf is the address of a member by its name in the team: alice, or alice@laptop, also for this machine's own name.
func (t *Team) AddressOf(name wire.Name) wire.Address {
	agent, host, isElsewhere := strings.Cut(string(name), "@")
	if isElsewhere {
		if c, _ := t.Config(); host == string(c.Bridge.Host) {
			host = ""
		}
	}
	return wire.Address{Agent: wire.Name(agent), Team: t.Name, Host: wire.Name(host)}
}

// NameOf is how team.toml calls a sender: alice, or alice@laptop.
func (t *Team) NameOf(a wire.Address) wire.Name {
	switch {
	case a.Team != t.Name:
		return wire.Name(a.String())
	case a.Host != "":
		return a.Agent + "@" + a.Host
	}
	return a.Agent
}

// answers reports whether a message is a reply to one that the agent has sent its sender, or a shared inbox from which that
// has taken it.
func (t *Team) answers(m *wire.Message, agent wire.Name) bool {
	if _, by := m.FromAgent(); m.InReplyTo == "" || by != (wire.Address{}) {
		return false
	}
	asked, err := t.Box(agent).Sent(m.InReplyTo)
	return err == nil && slices.ContainsFunc(asked.To, func(a wire.Address) bool {
		return a == m.From || a.Team == t.Name && a.Host == "" && claim.HasTaken(t.Box(a.Agent), asked.ID, m.From)
	})
}

// listed is "lead", or "lead, bob and me".
func listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
