package teamdir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// If an answer is due (due_at) and missing, the recipient's runner sends one notice to the lead, and to those who have
// asked for it (Subscription), and, between two turns, one reminder to the agent, under derived ids so that each is sent once. Without a runner the answer is only shown as
// overdue.

// overdueItem is a message whose answer by the owner of a mailbox is overdue.
type overdueItem struct {
	*maildir.Item
	by wire.Name
}

// overdue returns the messages in mailboxes whose answers are overdue. Box.Due leaves out messages that are withdrawn or
// expired. With an *UnreadableError it returns the others.
func (t *Team) overdue(ctx context.Context, boxes ...*maildir.Box) (all []overdueItem, err error) {
	errs, now := make([]error, len(boxes)), time.Now()
	var asked []*wire.Message
	for i, b := range boxes {
		var due []*maildir.Item
		due, errs[i] = b.Due(ctx)
		for _, it := range due {
			if it.DueAt.Before(now) {
				all, asked = append(all, overdueItem{it, b.Agent()}), append(asked, it.Message)
			}
		}
	}
	answers := t.root.Answers(ctx, asked...)
	all = slices.DeleteFunc(all, func(it overdueItem) bool { return answers.IsAnswered(it.Message, t.Box(it.by).Address()) })
	return all, unreadable(boxes, errs)
}

// Remind sends the notices about a member's overdue answers to the lead and to subscribers and, between two turns, reminders of those that
// it has read to the member itself. Runners call it.
func (t *Team) Remind(ctx context.Context, box *maildir.Box, betweenTurns bool, origin *wire.Origin) error {
	c, err := t.Config() // a file with mistakes names no lead
	overdue, unreadable := t.overdue(ctx, box)
	errs := []error{err, unreadable}
	if len(overdue) == 0 {
		return errors.Join(errs...)
	}
	subscribers := slices.DeleteFunc(t.Subscribers(), func(sub wire.Name) bool {
		s, err := t.readSubscriber(sub)
		return err != nil || sub == box.Agent() || sub == c.Lead || !s.wants(config.OnOverdue, box.Agent())
	})
	for _, it := range overdue {
		send := func(to wire.Name, purpose, format string, args ...any) {
			isSent := IsNoticeFrom(box.Address())
			id := wire.Derive(purpose, it.ID, box.Address())
			if _, err := t.Box(to).GetDerived(id, isSent); err == nil {
				return
			}
			payload, _ := json.Marshal(map[string]wire.ID{"overdue": it.ID})
			m := &wire.Message{
				// Without in_reply_to: it must not look like the answer.
				ID: id, Type: wire.TypeNotice, Thread: it.ThreadID(), ReplyWanted: "no",
				Subject: "overdue: " + letter.OneLine(it.Title(), 200), Body: fmt.Sprintf(format, args...), Origin: origin, Payload: payload,
			}
			o := &Outgoing{From: box, To: []wire.Address{t.Box(to).Address()}, Message: m, Derived: isSent}
			_, err := t.root.Send(ctx, o)
			errs = append(errs, err)
		}
		id, status, due := it.ID.Short(6), "has not even read", letter.Age(time.Now(), it.DueAt)
		if hasRead(it.Item) {
			status = "has not answered"
		}
		if lead := c.Lead; err == nil && lead != "" && lead != box.Agent() && t.Box(lead).Exists() {
			send(lead, "due-lead", "%s %s %s from %s, due %s: atm trace %s", box.Agent(), status, id, it.From, due, id)
		}
		for _, sub := range subscribers {
			send(sub, "due-told", "%s %s %s from %s, due %s: atm trace %s", box.Agent(), status, id, it.From, due, id)
		}
		if betweenTurns && hasRead(it.Item) {
			send(box.Agent(), "due", "Your answer to %s from %s was due %s: atm reply %s \"…\"", id, it.From, due, id)
		}
	}
	return errors.Join(errs...)
}

// OverdueAnswer describes an overdue answer.
type OverdueAnswer struct {
	ID      wire.ID   `json:"id"`
	Agent   wire.Name `json:"agent"`
	From    string    `json:"from"`
	Subject string    `json:"subject"`
	DueAt   time.Time `json:"due_at"`
	Read    bool      `json:"read"`
}

// OverdueAnswers returns all members' overdue answers by due date. With an *UnreadableError it returns the others.
func (t *Team) OverdueAnswers(ctx context.Context) (out []OverdueAnswer, err error) {
	boxes, err := t.Boxes()
	if err != nil {
		return nil, err
	}
	overdue, err := t.overdue(ctx, boxes...)
	for _, it := range overdue {
		out = append(out, OverdueAnswer{it.ID, it.by, it.From.String(), it.Title(), it.DueAt, hasRead(it.Item)})
	}
	slices.SortStableFunc(out, func(a, b OverdueAnswer) int { return a.DueAt.Compare(b.DueAt) })
	return out, err
}
