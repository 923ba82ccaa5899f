package teams

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
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

// TellLead tells the lead that an agent's screen asks something. Without a lead,
// or where the agent is the lead, nobody is told: `atm pending` shows it.
func (t *Team) TellLead(ctx context.Context, agent *mailbox.Box, q Asked, origin *wire.Origin) error {
	lead, err := t.leadOf(agent)
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
	return t.tell(ctx, agent, lead, &wire.Message{
		ID: q.ID, Type: wire.TypePermissionRequest, Subject: fmt.Sprintf("%s asks: %s", name, firstLine(q.Prompt)),
		Body: body + way, Payload: payload, Origin: origin,
	})
}

// Untell takes a question back that nobody has to answer any more.
func (t *Team) Untell(ctx context.Context, agent *mailbox.Box, id wire.ID) error {
	lead, err := t.leadOf(agent)
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

// Overdue says once that an answer to a message is overdue: to the agent that
// has it, or to its lead.
func (t *Team) Overdue(ctx context.Context, agent *mailbox.Box, lead bool, id wire.ID, origin *wire.Origin) error {
	it, err := agent.Get(id)
	if err != nil {
		return err
	}
	to, say := agent.Agent(), fmt.Sprintf("Your answer to %s is overdue since %s: atm reply %s \"…\"", id.Short(6), mailbox.Age(time.Now(), it.DueAt), id.Short(6))
	purpose := "due"
	if lead {
		if to, err = t.leadOf(agent); to == "" || err != nil {
			return err
		}
		say = fmt.Sprintf("%s has not answered %s from %s, due %s.", agent.Agent(), id.Short(6), it.From, mailbox.Age(time.Now(), it.DueAt))
		purpose = "due-lead"
	}
	return t.tell(ctx, agent, to, &wire.Message{
		ID: wire.Derive(purpose, id, agent.Address()), Type: wire.TypeNotice, InReplyTo: id, Thread: it.ThreadID(),
		ReplyWanted: "no", Body: say, Origin: origin,
	})
}

// leadOf is whom an agent's matters go to; "": nobody.
func (t *Team) leadOf(agent *mailbox.Box) (wire.Name, error) {
	r, err := t.Roster()
	if err != nil || r.Lead == agent.Agent() {
		return "", err
	}
	if r.Lead == "" && t.Box("lead").Exists() && agent.Agent() != "lead" {
		return "lead", nil
	}
	return r.Lead, nil
}

// tell delivers a message that a runner writes for its agent.
func (t *Team) tell(ctx context.Context, from *mailbox.Box, to wire.Name, m *wire.Message) error {
	o := &Outgoing{From: from, To: []wire.Address{{Agent: to, Team: t.Name}}, Message: m, Given: true}
	if err := t.root.Prepare(o); err != nil {
		return err
	}
	if len(o.Failed) > 0 {
		return o.Failed[0].Err
	}
	mailbox.Deliver(ctx, o.Post)
	return o.Post.Outcomes[0].Err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return mailbox.Clip(line, 200)
}
