package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// answers gives an answer to what members here ask to those, if by this team's rules its sender may answer; else,
// and when it has failed too often, the sender is told why not. It returns whom the message goes to as mail all the
// same: an answer does only as the reason of a refusal.
func (b *Bridge) answers(ctx context.Context, in *incoming) (mail []*mailbox.Box, err error) {
	m, r := in.message, teams.PermissionReply{}
	if m.Type != wire.TypePermissionReply || json.Unmarshal(m.Payload, &r) != nil || r.Question == "" {
		return in.to, nil
	}
	for _, box := range in.to {
		done := &receipt{Sender: m.From.String(), At: time.Now().UTC(), Answered: true, id: m.ID, recipient: box.Agent(), host: m.From.Host}
		if was, err := b.Team.Dir().Exists(done.file()); err != nil {
			return nil, err
		} else if was {
			continue
		}
		if !box.Exists() {
			mail = append(mail, box) // for delivery to say
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 2*apiTimeout) // else a stuck runner holds back all that comes
		err = b.judge(limited, m, box.Agent(), r)
		cancel()
		outcome := "failed"
		if command.IsRefusal(err) {
			outcome = "did not count"
		}
		switch {
		case command.IsRefusal(err) || err != nil && in.tries >= maxTries:
			subject := fmt.Sprintf("%s@%s: your answer %s", box.Agent(), b.Host, outcome)
			err = b.giveBack(ctx, m, box, "not answered", subject, fmt.Sprintf("%s: %v", m.Title(), err), err.Error())
		case err != nil: // it may have counted, which shows when it comes again
		case r.Decision == "reject" && r.Reason != "":
			mail = append(mail, box)
			continue
		default:
			now, evidence := time.Now().UTC(), "it answered the question"
			err = b.publishStages(ctx, done, "answered", []teams.Stage{{Stage: "acked", At: &now, Evidence: &evidence}})()
			b.reportMail("received", m, m.From.Host, string(box.Agent()), "")
		}
		if err == nil {
			err = b.writeReceipt(done)
		}
		if err != nil {
			return nil, err
		}
	}
	return mail, nil
}

// judge answers the question as `atm approve` does. What the same person has answered so before is done.
func (b *Bridge) judge(ctx context.Context, m *wire.Message, agent wire.Name, r teams.PermissionReply) error {
	by := m.From.Agent + "@" + m.From.Host
	if r.Decision != "approve" && r.Decision != "reject" {
		return command.Usage("%q is neither approve nor reject", r.Decision)
	}
	open, err := b.Team.Questions(agent)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(open, func(q policy.Question) bool { return q.ID == r.Question && q.Since.Equal(r.Since) })
	if n < 0 {
		before, err := b.answerBefore(agent, r)
		isSame := before.Text("by") == string(by) && before.Text("decision") == r.Decision && cmp.Or(r.Option, before.Text("option_id")) == before.Text("option_id")
		if err == nil && !isSame {
			err = command.Refused("it is not open any more (answered before by %s)", cmp.Or(before.Text("by"), "nobody that is known"))
		}
		return err
	}
	scope, isInAgent := &command.Scope{Root: b.Root, Team: b.Team}, m.Origin != nil && m.Origin.Run != ""
	return scope.AnswerFor(ctx, isInAgent, open[n], command.Answer{Option: r.Option, IsDeny: r.Decision == "reject", Reason: r.Reason, By: by})
}

// answerBefore is the event of the first answer to a question, a zero one where nobody is known to have answered.
func (b *Bridge) answerBefore(agent wire.Name, r teams.PermissionReply) (wire.Event, error) {
	events, err := b.Team.Box(agent).Log().Tail(func(e *wire.Event) bool { return e.At.Before(r.Since) })
	for _, e := range events {
		if e.Text("by") != "" && e.Text("id") == r.Question && !e.At.Before(r.Since) {
			return e, nil
		}
	}
	return wire.Event{}, err
}
