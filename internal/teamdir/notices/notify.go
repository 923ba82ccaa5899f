// Package notices tells what has happened: to members who subscribed to it and to commands of team.toml; it sends an agent's
// questions to who may answer them, reminds of answers that are due, and gives programs the mail that has become due.
package notices

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// PermissionReply is the payload of a permission_reply, the answer to a question.
type PermissionReply struct {
	Decision string    `json:"decision"`       // approve, reject
	Question string    `json:"question"`       // its id, which a program may reuse
	Since    time.Time `json:"since,omitzero"` // of the question, to tell it from another with that id
	Option   string    `json:"option,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// NotifyRequest sends a question of an agent to its answerer, as the message id. Without one, only `atm pending` shows it.
func NotifyRequest(ctx context.Context, t *teamdir.Team, agent *maildir.Box, q ask.Question, id wire.ID, origin *wire.Origin) error {
	name := agent.Agent()
	to, err := answerer(t, name)
	if to == "" || err != nil {
		return err
	}
	payload, err := json.Marshal(struct {
		Kind    string       `json:"kind"` // permission, trust, question, unknown
		Prompt  string       `json:"prompt"`
		Tool    string       `json:"tool,omitempty"`
		Input   string       `json:"input,omitempty"` // what the tool is about to do
		Options []ask.Option `json:"options,omitempty"`
	}{cmp.Or(q.Dialog, "permission"), q.Prompt, q.Tool, q.Input, q.Options})
	if err != nil {
		return err
	}
	text, option := q.Text(), ""
	if q.Dialog == "question" { // only an option answers it
		option = " OPTION"
		for _, o := range q.Options {
			text += "\n" + letter.Name(o.ID, 40) + " " + o.Words()
		}
	}
	answer := fmt.Sprintf("atm approve %s%s, or atm reject %s --reason \"…\"", name, option, name)
	if q.Running {
		answer += fmt.Sprintf("; atm screen %s shows it", name)
	}
	if reducer.IsForTerminal(q.Dialog) {
		answer = fmt.Sprintf("Only a person at its terminal may answer that: atm attach %s", name)
	}
	asked, _ := (&letter.Renderer{}).Body(text, 0, 0) // below what atm says, and told from it
	isSent := func(old *wire.Message) bool {          // perhaps in other words: its program has ended since
		return old.Type == wire.TypePermissionRequest && old.From == agent.Address()
	}
	_, err = post.Send(ctx, t.Root(), &post.Outgoing{From: agent, To: []wire.Address{t.Box(to).Address()}, Derived: isSent, Message: &wire.Message{
		ID: id, Type: wire.TypePermissionRequest, Subject: fmt.Sprintf("%s %s", name, letter.Clip(q.Summary(), 200)),
		Body: answer + "\n" + string(asked), Payload: payload, Origin: origin,
	}})
	return err
}

// WithdrawRequest withdraws a message of NotifyRequest, also one that was read, once the question needs no answer any more:
// a day's questions would be most of a person's mail.
func WithdrawRequest(ctx context.Context, t *teamdir.Team, agent *maildir.Box, id wire.ID) error {
	to, err := answerer(t, agent.Agent())
	if to == "" || err != nil {
		return err
	}
	if _, err = t.Box(to).WithdrawRead(ctx, id, agent.Address(), nil); errors.Is(err, maildir.ErrNotFound) {
		return nil // it was never sent
	}
	return err
}

// answerer returns the member that an agent's questions are sent to, by the policy that its runner was started with:
// the lead, unless approvers are listed without the lead; then the first of them that is a member. "": nobody, for one
// if the lead asks.
func answerer(t *teamdir.Team, asker wire.Name) (wire.Name, error) {
	p, _, err := t.PolicyFor(asker)
	if _, hasMistakes := errors.AsType[*config.Error](err); err != nil && !hasMistakes {
		return "", err
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
