package teams

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Asked is what an agent's screen asks, as its lead is told.
type Asked struct {
	ID     wire.ID // of the question, and so of the message
	Kind   string  // permission, trust, question, unknown
	Prompt string
	Tool   string
	Input  string // what the tool is about to do

	Options json.RawMessage
}

// TellLead tells the lead that an agent's screen asks something, or the approver
// who may answer instead (Hears). Where there is nobody, `atm pending` shows it.
func (t *Team) TellLead(ctx context.Context, agent *mailbox.Box, q Asked, origin *wire.Origin) error {
	lead, err := t.Hears(agent.Agent())
	if lead == "" || err != nil {
		return err
	}
	payload, err := json.Marshal(struct {
		Kind    string          `json:"kind"`
		Prompt  string          `json:"prompt"`
		Tool    string          `json:"tool,omitempty"`
		Input   string          `json:"input,omitempty"`
		Options json.RawMessage `json:"options,omitempty"`
	}{q.Kind, q.Prompt, q.Tool, q.Input, q.Options})
	if err != nil {
		return err
	}
	name := agent.Agent()
	body := q.Prompt
	if q.Tool != "" {
		body = fmt.Sprintf("%s: %s\n%s", q.Tool, q.Input, q.Prompt)
	}
	way := fmt.Sprintf("\n\natm approve %s, or atm reject %s --reason \"…\"; atm screen %s shows it", name, name, name)
	if q.Kind == "trust" {
		way = fmt.Sprintf("\n\nNobody but a person at its terminal may answer that: atm attach %s", name)
	}
	return t.root.deliver(ctx, &Outgoing{From: agent, To: []wire.Address{{Agent: lead, Team: t.Name}}, Given: true, Message: &wire.Message{
		ID: q.ID, Type: wire.TypePermissionRequest, Subject: fmt.Sprintf("%s asks: %s", name, letter.FirstLine(q.Prompt, 200)),
		Body: body + way, Payload: payload, Origin: origin,
	}})
}

// Untell takes a question back that nobody has to answer any more.
func (t *Team) Untell(ctx context.Context, agent *mailbox.Box, id wire.ID) error {
	lead, err := t.Hears(agent.Agent())
	if lead == "" || err != nil {
		return err
	}
	box, err := t.Member(lead)
	if err != nil {
		return err
	}
	if it, err := box.Get(id); err != nil || it.State != mailbox.Unread {
		return nil // seen, or never told
	}
	_, err = box.Withdraw(ctx, id, agent.Address())
	return err
}

// Lead is the team's lead: whom team.toml names, else the member called lead; ""
// when there is neither.
func (t *Team) Lead() (wire.Name, error) {
	r, err := t.Roster()
	if err != nil {
		return "", err
	}
	return t.leads(r.Lead), nil
}

// leads is the lead, of whom team.toml says this.
func (t *Team) leads(named wire.Name) wire.Name {
	if named == "" && t.Box("lead").Exists() {
		return "lead"
	}
	return named
}

// leadOf is whom an agent's matters go to; "": nobody, as for the lead's own.
func (t *Team) leadOf(agent *mailbox.Box) (wire.Name, error) {
	lead, err := t.Lead()
	if err != nil || lead == agent.Agent() {
		return "", err
	}
	return lead, nil
}

// Hears is who is told of what an agent asks: the lead, but where approvers are
// named without the lead the first of them who is a member. "": nobody, as where
// there is no lead, or where it is the lead who asks.
func (t *Team) Hears(asker wire.Name) (wire.Name, error) {
	p, ok, err := t.KeptPolicy(asker)
	if err != nil {
		return "", err
	}
	if !ok {
		roster, err := t.Roster()
		if err != nil {
			return "", err
		}
		p = roster.Policy()
	}
	lead, err := t.Lead()
	if err != nil {
		return "", err
	}
	switch {
	case lead == asker:
		return "", nil
	case lead == "", p.Approvers == nil, slices.Contains(p.Approvers, lead):
		return lead, nil
	}
	for _, n := range p.Approvers {
		if n != asker && t.Box(n).Exists() {
			return n, nil
		}
	}
	return "", nil
}
