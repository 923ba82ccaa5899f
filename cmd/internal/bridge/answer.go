package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// applyAnswers applies an answer from another host to the questions of members here. It returns the mailboxes that the
// message also goes to as mail, all if it is no answer.
func (b *Bridge) applyAnswers(ctx context.Context, in *incoming) (mail []*maildir.Box, err error) {
	var r notices.PermissionReply
	if in.message.Type != wire.TypePermissionReply || json.Unmarshal(in.message.Payload, &r) != nil || r.Question == "" ||
		r.Decision != "approve" && r.Decision != "reject" {
		return in.boxes, nil
	}
	for _, box := range in.boxes {
		isMail, err := b.applyAnswer(ctx, in, box, r)
		if err != nil {
			return nil, err
		}
		if isMail {
			mail = append(mail, box)
		}
	}
	return mail, nil
}

// applyAnswer answers a member's question once, if this team's rules let the sender do it. If they do not, or after the
// last try, the sender gets a notice. isMail reports whether the member gets the message: the reason of a rejection.
func (b *Bridge) applyAnswer(ctx context.Context, in *incoming, box *maildir.Box, r notices.PermissionReply) (isMail bool, err error) {
	m := in.message
	done := &receipt{Sender: m.From.String(), At: time.Now().UTC(), Answered: true, id: m.ID, recipient: box.Agent(), host: m.From.Host}
	isDone, err := b.Team.Dir().Exists(done.file())
	if err != nil || isDone {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, 2*apiTimeout) // a stuck runner must not block all other mail
	err = b.judge(limited, m, box.Agent(), r)
	cancel()
	outcome := "failed"
	if app.IsRefusal(err) {
		outcome = "did not count"
	}
	switch {
	case app.IsRefusal(err) || err != nil && in.tries >= maxTries:
		subject := fmt.Sprintf("%s@%s: your answer %s", box.Agent(), b.Host, outcome)
		notice := &wire.Message{ID: wire.Derive("not answered", m.ID, b.addressOf(box)), Subject: subject, Body: fmt.Sprintf("%s: %v", m.Title(), err)}
		err = b.notifySender(ctx, m, box, notice, err.Error())
	case err != nil: // it may have been applied; judge finds out when it comes again
	case r.Decision == "reject" && r.Reason != "":
		return true, nil
	default:
		now, evidence := time.Now().UTC(), "it answered the question"
		err = b.publishStages(ctx, done, "answered", []history.Stage{{Name: "acked", At: now, Evidence: evidence}})()
		b.reportMail("received", m, m.From.Host, string(box.Agent()), "")
	}
	if err == nil {
		err = b.writeReceipt(done)
	}
	return false, err
}

// judge answers the question as `atm approve` does. If the same person has given this answer before, that is a success.
func (b *Bridge) judge(ctx context.Context, m *wire.Message, agent wire.Name, r notices.PermissionReply) error {
	by := m.From.Agent + "@" + m.From.Host
	open, err := presence.Questions(b.Team, agent)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(open, func(q ask.Question) bool { return q.ID == r.Question && q.Since.Equal(r.Since) })
	if n < 0 {
		first, err := b.firstAnswer(agent, r)
		isSame := first.Text(wire.FieldBy) == string(by) && first.Text("decision") == r.Decision && cmp.Or(r.Option, first.Text("option_id")) == first.Text("option_id")
		if err == nil && !isSame {
			err = failure.Refused("that question is closed (already answered by %s)", cmp.Or(first.Text(wire.FieldBy), "somebody unknown"))
		}
		return err
	}
	scope := app.Of(b.Team)
	isInAgent, _ := m.FromAgent()
	isInAgent = isInAgent || m.Origin != nil && m.Origin.Run != "" // of an older atm
	return scope.AnswerFor(ctx, isInAgent, open[n], ask.Answer{Option: r.Option, Deny: r.Decision == "reject", Reason: r.Reason, By: string(by)})
}

// firstAnswer returns the event of the first answer to a question, a zero event if the log has none.
func (b *Bridge) firstAnswer(agent wire.Name, r notices.PermissionReply) (wire.Event, error) {
	events, err := b.Team.Box(agent).Log().Tail(func(e *wire.Event) bool { return e.At.Before(r.Since) })
	for _, e := range events {
		if e.Text(wire.FieldBy) != "" && e.Text(wire.FieldID) == r.Question && !e.At.Before(r.Since) {
			return e, nil
		}
	}
	return wire.Event{}, err
}
