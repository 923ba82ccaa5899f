package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// NotifyRequest tells whoever is to hear of it (Notified) that an agent's screen
// asks something. Where there is nobody, only `atm pending` shows it.
func (t *Team) NotifyRequest(ctx context.Context, agent *mailbox.Box, q DialogRequest, origin *wire.Origin) error {
	name := agent.Agent()
	to, err := t.Notified(name)
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
	return t.root.deliver(ctx, &Outgoing{From: agent, To: []wire.Address{{Agent: to, Team: t.Name}}, Given: true, Message: &wire.Message{
		ID: q.ID, Type: wire.TypePermissionRequest, Subject: fmt.Sprintf("%s asks: %s", name, letter.FirstLine(q.Prompt, 200)),
		Body: body + answer, Payload: payload, Origin: origin,
	}})
}

// WithdrawRequest takes back what NotifyRequest sent, if nobody has read it yet:
// the question needs no answer any more.
func (t *Team) WithdrawRequest(ctx context.Context, agent *mailbox.Box, id wire.ID) error {
	to, err := t.Notified(agent.Agent())
	if to == "" || err != nil {
		return err
	}
	it, err := t.Box(to).Get(id)
	if err != nil || it.State != mailbox.Unread {
		return nil // read, or never sent
	}
	_, err = t.Box(to).Withdraw(ctx, id, agent.Address())
	return err
}

// Notified is the member that is told what an agent asks: the lead, but where
// approvers are named without the lead, the first of them that is a member. "":
// nobody, as where there is no lead, or where the lead asks.
func (t *Team) Notified(asker wire.Name) (wire.Name, error) {
	p, err := t.PolicyFor(asker)
	var mistakes *config.Error
	if err != nil && !errors.As(err, &mistakes) { // somebody is told in spite of mistakes in team.toml
		return "", err
	}
	lead, err := t.Lead()
	if err != nil {
		lead = p.Lead
	}
	if lead == asker {
		return "", nil
	}
	if lead == "" || p.Approvers == nil || slices.Contains(p.Approvers, lead) {
		return lead, nil
	}
	for _, n := range p.Approvers {
		if n != asker && t.Box(n).Exists() {
			return n, nil
		}
	}
	return "", nil
}
