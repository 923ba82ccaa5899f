package notices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

// If an answer is due (due_at) and missing, the recipient's runner sends one notice to the lead, and to those who have asked for
// it (Subscription), and, between two turns, one reminder to the agent, under derived ids so that each is sent once. Without a
// runner the answer is only shown as overdue.

// overdueItem is a message whose answer by the owner of a mailbox is overdue.
type overdueItem struct {
	*wire.Item
	by wire.Name
}

// overdue returns the messages in mailboxes whose answers are overdue. inbox.Due leaves out messages that are withdrawn or
// expired. With an *UnreadableError it returns the others.
func overdue(ctx context.Context, t *teamdir.Team, boxes ...*maildir.Box) (all []overdueItem, err error) {
	errs, now := make([]error, len(boxes)), time.Now()
	var asked []*wire.Message
	for i, b := range boxes {
		var due []*wire.Item
		due, errs[i] = inbox.Due(b)
		due, pastErr := withoutPast(t, b, slices.DeleteFunc(due, func(it *wire.Item) bool { return !it.DueAt.Before(now) }))
		errs[i] = errors.Join(errs[i], pastErr)
		for _, it := range due {
			all, asked = append(all, overdueItem{it, b.Agent()}), append(asked, it.Message)
		}
	}
	answers := post.AnswersTo(ctx, t.Root(), asked...)
	all = slices.DeleteFunc(all, func(it overdueItem) bool { return answers.IsAnswered(it.Message, t.Box(it.by).Address()) })
	return all, teamdir.JoinUnreadable(boxes, errs)
}

// withoutPast leaves out what was read before a fresh start of the log: nobody is reminded of what came with a root.
func withoutPast(t *teamdir.Team, b *maildir.Box, due []*wire.Item) ([]*wire.Item, error) {
	if !slices.ContainsFunc(due, (*wire.Item).IsRead) {
		return due, nil
	}
	s, err := t.State(b.Agent())
	if err != nil || s.FreshAt.IsZero() {
		return due, err
	}
	since := map[wire.ID]bool{}
	err = b.Log().Backward(func(e *wire.Event) bool {
		since[e.MessageID()] = true
		return e.IsFreshStart()
	})
	return slices.DeleteFunc(due, func(it *wire.Item) bool { return it.IsRead() && !since[it.ID] }), err
}

// Remind sends the notices about a member's overdue answers to the lead and to subscribers and, between two turns, reminders of
// those that it has read to the member itself. Runners call it.
func Remind(ctx context.Context, t *teamdir.Team, box *maildir.Box, betweenTurns bool, origin *wire.Origin) error {
	c, err := t.Config() // a file with mistakes names no lead
	overdue, unreadable := overdue(ctx, t, box)
	errs := []error{err, unreadable}
	if len(overdue) == 0 {
		return errors.Join(errs...)
	}
	subscribers := readSubscribers(t)
	maps.DeleteFunc(subscribers, func(sub wire.Name, s *subscriber) bool {
		return sub == box.Agent() || sub == c.Lead || !s.wants(config.OnOverdue, box.Agent())
	})
	for _, it := range overdue {
		send := func(to wire.Name, purpose, format string, args ...any) {
			isSent := post.IsNoticeFrom(box.Address())
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
			o := &post.Outgoing{From: box, To: []wire.Address{t.Box(to).Address()}, Message: m, Derived: isSent}
			_, err := post.Send(ctx, t.Root(), o)
			errs = append(errs, err)
		}
		id, status, due := it.ID.Short(6), "has not even read", letter.Age(time.Now(), it.DueAt)
		if it.IsRead() {
			status = "has not answered"
		}
		if lead := c.Lead; err == nil && lead != "" && lead != box.Agent() && t.Box(lead).Exists() {
			send(lead, "due-lead", "%s %s %s from %s, due %s: atm trace %s", box.Agent(), status, id, it.From, due, id)
		}
		for sub := range subscribers {
			send(sub, "due-told", "%s %s %s from %s, due %s: atm trace %s", box.Agent(), status, id, it.From, due, id)
		}
		if betweenTurns && it.IsRead() {
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
func OverdueAnswers(ctx context.Context, t *teamdir.Team) (out []OverdueAnswer, err error) {
	boxes, err := t.Boxes()
	if err != nil {
		return nil, err
	}
	overdue, err := overdue(ctx, t, boxes...)
	for _, it := range overdue {
		out = append(out, OverdueAnswer{it.ID, it.by, it.From.String(), it.Title(), it.DueAt, it.IsRead()})
	}
	slices.SortStableFunc(out, func(a, b OverdueAnswer) int { return a.DueAt.Compare(b.DueAt) })
	return out, err
}
