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

// When an answer is due (due_at) and has not come, the lead gets one notice, and the
// agent one reminder between two turns: its runner sends both, under ids that are
// derived from the message and its recipient, so that each is sent once. Without a
// runner the answer is only shown as overdue.
//
// What counts as an answer is a reply of the recipient's, or of whoever took the
// message from a shared inbox, and the ack of the latter: it means that the work is
// done. Any other ack means "I have it", and the answer is still expected. What was
// withdrawn, superseded or has expired is expected no longer.

// overdue lists the messages to a member whose answer is overdue.
func (t *Team) overdue(ctx context.Context, box *mailbox.Box) ([]*mailbox.Item, error) {
	due, err := box.Due(ctx, time.Now())
	if err != nil || len(due) == 0 {
		return nil, err
	}
	by := box.Address()
	if shared, err := box.Shared(); err != nil {
		return nil, err
	} else if shared {
		by = wire.Address{} // whoever took it may answer
	}
	var overdue []*mailbox.Item
	for _, it := range due {
		sender, err := t.root.Mailbox(it.From)
		if err != nil || it.From.Agent == "drop" {
			continue // nobody waits for the answer
		}
		ack, err := sender.Get(AckID(it.ID, box.Address()))
		finished := err == nil && ack.From != box.Address()
		if !finished && len(Replies(ctx, sender, it.ID, by)) == 0 {
			overdue = append(overdue, it)
		}
	}
	return overdue, nil
}

// hasRead reports whether a message has been read.
func hasRead(it *mailbox.Item) bool { return it.State == mailbox.Owed || it.State == mailbox.Done }

// Remind sends what is due about the answers that are expected of a member: the lead is
// told, and where the member is between two turns, it is reminded of what it has read.
// In a root that may have come with a clone it does nothing.
func (t *Team) Remind(ctx context.Context, box *mailbox.Box, betweenTurns bool, origin *wire.Origin) error {
	if !t.root.Accepted {
		return nil
	}
	overdue, err := t.overdue(ctx, box)
	errs := []error{err}
	for _, it := range overdue {
		err := t.sayOverdue(ctx, box, true, it, origin)
		if err == nil && betweenTurns && hasRead(it) {
			err = t.sayOverdue(ctx, box, false, it, origin)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remind %s of %s: %w", box.Agent(), it.ID.Short(6), err))
		}
	}
	return errors.Join(errs...)
}

// sayOverdue says once that the answer to a message is overdue: to the agent that
// has it, or to its lead; where there is none, to nobody.
func (t *Team) sayOverdue(ctx context.Context, agent *mailbox.Box, lead bool, it *mailbox.Item, origin *wire.Origin) error {
	id := it.ID
	to, say := agent.Agent(), fmt.Sprintf("Your answer to %s from %s was due %s: atm reply %s \"…\"", id.Short(6), it.From, wasDue(it.DueAt), id.Short(6))
	purpose := "due"
	if lead {
		var err error
		if to, err = t.leadOf(agent); to == "" || err != nil {
			return err
		}
		if !t.Box(to).Exists() {
			return nil
		}
		has := "has not even read"
		if hasRead(it) {
			has = "has not answered"
		}
		say = fmt.Sprintf("%s %s %s from %s, due %s: atm trace %s", agent.Agent(), has, id.Short(6), it.From, wasDue(it.DueAt), id.Short(6))
		purpose = "due-lead"
	}
	notice := wire.Derive(purpose, id, agent.Address())
	if _, err := t.Box(to).Get(notice); err == nil {
		return nil
	}
	payload, err := json.Marshal(map[string]wire.ID{"overdue": id})
	if err != nil {
		return err
	}
	return t.notify(ctx, agent, to, &wire.Message{
		// It answers nothing: who waits for the answer is not to take it for one.
		ID: notice, Type: wire.TypeNotice, Thread: it.ThreadID(),
		ReplyWanted: "no", Subject: "overdue: " + it.Title(), Body: say, Origin: origin,
		Payload: payload,
	})
}

// wasDue says how long ago an answer was due.
func wasDue(at time.Time) string {
	if ago := letter.Age(time.Now(), at); ago != "now" {
		return ago
	}
	return "just now"
}

// dueOf says for trace what is known of the answer that is expected to a message: ""
// where none is, or none any more.
func (t *Team) dueOf(ctx context.Context, box *mailbox.Box, m *wire.Message, now time.Time) string {
	if m.DueAt.IsZero() {
		return ""
	}
	if now.Before(m.DueAt) {
		return "an answer is due " + letter.Age(now, m.DueAt)
	}
	overdue, err := t.overdue(ctx, box)
	for _, it := range overdue {
		if it.ID == m.ID && err == nil {
			return "its answer was due " + wasDue(m.DueAt)
		}
	}
	return ""
}

// OverdueAnswer is an answer that somebody waits for, and that is overdue.
type OverdueAnswer struct {
	ID      wire.ID   `json:"id"`
	Agent   wire.Name `json:"agent"`
	From    string    `json:"from"`
	Subject string    `json:"subject"`
	DueAt   time.Time `json:"due_at"`
	Read    bool      `json:"read"`
}

// OverdueAnswers are the answers of all members that are overdue, the oldest first.
// What cannot be read hides nothing else.
func (t *Team) OverdueAnswers(ctx context.Context) (out []OverdueAnswer, err error) {
	boxes, err := t.Boxes()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, b := range boxes {
		overdue, err := t.overdue(ctx, b)
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) { // retired meanwhile
			errs = append(errs, err)
		}
		for _, it := range overdue {
			out = append(out, OverdueAnswer{
				ID: it.ID, Agent: b.Agent(), From: it.From.String(), Subject: it.Title(), DueAt: it.DueAt, Read: hasRead(it),
			})
		}
	}
	slices.SortStableFunc(out, func(a, b OverdueAnswer) int { return a.DueAt.Compare(b.DueAt) })
	return out, errors.Join(errs...)
}
