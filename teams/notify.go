package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// DialogRequest is what an agent's screen asks, as the lead is told.
type DialogRequest struct {
	ID      wire.ID         `json:"-"`    // of the question, and so of the message
	Kind    string          `json:"kind"` // permission, trust, question, unknown
	Prompt  string          `json:"prompt"`
	Tool    string          `json:"tool,omitempty"`
	Input   string          `json:"input,omitempty"` // what the tool is about to do
	Options json.RawMessage `json:"options,omitempty"`
}

// PermissionReply is the payload of a permission_reply: what somebody answers to a question.
type PermissionReply struct {
	Decision string    `json:"decision"`       // approve, reject
	Question string    `json:"question"`       // its id, which a program may use again:
	Since    time.Time `json:"since,omitzero"` // as the question has it
	Option   string    `json:"option,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// NotifyRequest tells whoever is to hear of it that an agent's screen asks something.
// Where there is nobody, only `atm pending` shows it.
func (t *Team) NotifyRequest(ctx context.Context, agent *mailbox.Box, q DialogRequest, origin *wire.Origin) error {
	name := agent.Agent()
	to, err := t.notified(name)
	if to == "" || err != nil {
		return err
	}
	payload, err := json.Marshal(q)
	if err != nil {
		return err
	}
	body := q.Prompt
	if q.Tool != "" {
		body = fmt.Sprintf("%s: %s\n%s", q.Tool, q.Input, q.Prompt)
	}
	answer := fmt.Sprintf("\n\natm approve %s, or atm reject %s --reason \"…\"; atm screen %s shows it", name, name, name)
	if q.Kind == policy.DialogTrust {
		answer = fmt.Sprintf("\n\nOnly a person at its terminal may answer that: atm attach %s", name)
	}
	return t.notify(ctx, agent, to, &wire.Message{
		ID: q.ID, Type: wire.TypePermissionRequest, Subject: fmt.Sprintf("%s asks: %s", name, letter.FirstLine(q.Prompt, 200)),
		Body: body + answer, Payload: payload, Origin: origin,
	})
}

// notify sends a message under an id of its own from one member to another.
func (t *Team) notify(ctx context.Context, from *mailbox.Box, to wire.Name, m *wire.Message) error {
	return t.root.Send(ctx, &Outgoing{From: from, To: []wire.Address{{Agent: to, Team: t.Name}}, Message: m})
}

// WithdrawRequest takes back what NotifyRequest sent, unless it was read: the question needs no answer any more.
func (t *Team) WithdrawRequest(ctx context.Context, agent *mailbox.Box, id wire.ID) error {
	to, err := t.notified(agent.Agent())
	if to == "" || err != nil {
		return err
	}
	it, err := t.Box(to).Get(id)
	if err != nil || it.State != mailbox.Unread {
		return nil // read, or never sent
	}
	_, err = t.Box(to).Withdraw(ctx, id, agent.Address(), true)
	return err
}

// notified is the member that is told what an agent asks: the lead, but where approvers are named without the lead, the
// first of them that is a member. "": nobody, as where the lead asks. It is as it was when the agent's runner started.
func (t *Team) notified(asker wire.Name) (wire.Name, error) {
	p, err := t.PolicyFor(asker)
	if _, mistakes := errors.AsType[*config.Error](err); err != nil && !mistakes {
		return "", err // in spite of mistakes in team.toml somebody is told
	}
	if p.Lead == asker {
		return "", nil
	}
	if p.Approvers == nil || slices.Contains(p.Approvers, p.Lead) {
		return p.Lead, nil
	}
	for _, n := range p.Approvers {
		if n != asker && t.Box(n).Exists() {
			return n, nil
		}
	}
	return "", nil
}
