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
	"github.com/agentteammail/atm/wire"
)

// When an answer is due (due_at) and has not come, the lead gets one notice, and the agent one reminder between two
// turns: its runner sends both, under ids that are derived from the message and its recipient, so that each is sent
// once. Without a runner the answer is only shown as overdue.
//
// What counts as an answer is a reply of the recipient, or of the member that took the message from a shared inbox, and
// the ack of the latter: it means that the work is done. Any other ack means "I have it", and the answer is still
// expected. What was withdrawn, superseded or has expired is expected no longer.

func (t *Team) overdue(ctx context.Context, box *mailbox.Box) ([]*mailbox.Item, error) {
	due, err := box.Due(ctx, time.Now())
	shared, e := box.Shared()
	if err = errors.Join(err, e); err != nil {
		return nil, err
	}
	by := box.Address()
	if shared {
		by = wire.Address{} // any member may have taken it
	}
	return slices.DeleteFunc(due, func(it *mailbox.Item) bool {
		sender, err := t.root.Mailbox(it.From)
		if sender == nil || err != nil && it.From.Host == "" || it.From.Agent == "drop" {
			return true // nobody waits for the answer
		}
		ack, err := sender.Get(wire.AckID(it.ID, box.Address()))
		return err == nil && ack.From != box.Address() || len(t.root.replies(ctx, it.Message, by)) > 0
	}), nil
}

func hasRead(it *mailbox.Item) bool { return it.State == mailbox.Owed || it.State == mailbox.Done }

// Remind sends what is due about the answers that are expected of a member: the lead is told, and between two turns the
// member is reminded of what it has read. Runners call it.
func (t *Team) Remind(ctx context.Context, box *mailbox.Box, betweenTurns bool, origin *wire.Origin) error {
	c, err := t.Config() // with mistakes in it nobody is known to be the lead
	overdue, unreadable := t.overdue(ctx, box)
	errs := []error{err, unreadable}
	for _, it := range overdue {
		send := func(to wire.Name, purpose, format string, args ...any) {
			id := wire.Derive(purpose, it.ID, box.Address())
			if _, err := t.Box(to).Get(id); err == nil {
				return // sent before
			}
			payload, _ := json.Marshal(map[string]wire.ID{"overdue": it.ID})
			errs = append(errs, t.notify(ctx, box, to, &wire.Message{
				// It answers nothing: whoever waits for the answer is not to take it for one.
				ID: id, Type: wire.TypeNotice, Thread: it.ThreadID(), ReplyWanted: "no",
				Subject: "overdue: " + it.Title(), Body: fmt.Sprintf(format, args...), Origin: origin, Payload: payload,
			}))
		}
		id, has, was := it.ID.Short(6), "has not even read", letter.Age(time.Now(), it.DueAt)
		if hasRead(it) {
			has = "has not answered"
		}
		if lead := c.Lead; err == nil && lead != "" && lead != box.Agent() && t.Box(lead).Exists() {
			send(lead, "due-lead", "%s %s %s from %s, due %s: atm trace %s", box.Agent(), has, id, it.From, was, id)
		}
		if betweenTurns && hasRead(it) {
			send(box.Agent(), "due", "Your answer to %s from %s was due %s: atm reply %s \"…\"", id, it.From, was, id)
		}
	}
	return errors.Join(errs...)
}

// OverdueAnswer is an answer that a sender waits for, and that is overdue.
type OverdueAnswer struct {
	ID      wire.ID   `json:"id"`
	Agent   wire.Name `json:"agent"`
	From    string    `json:"from"`
	Subject string    `json:"subject"`
	DueAt   time.Time `json:"due_at"`
	Read    bool      `json:"read"`
}

// OverdueAnswers are the answers of all members that are overdue, the oldest first. What
// cannot be read hides nothing else.
func (t *Team) OverdueAnswers(ctx context.Context) (out []OverdueAnswer, err error) {
	err = t.Each(func(b *mailbox.Box) error {
		overdue, err := t.overdue(ctx, b)
		for _, it := range overdue {
			out = append(out, OverdueAnswer{it.ID, b.Agent(), it.From.String(), it.Title(), it.DueAt, hasRead(it)})
		}
		return err
	})
	slices.SortStableFunc(out, func(a, b OverdueAnswer) int { return a.DueAt.Compare(b.DueAt) })
	return out, err
}
