package teams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// When an answer is due (due_at) and has not come, the lead gets one notice, and
// the agent one reminder between two turns. Nobody has to run for that: whoever
// looks at a mailbox sends what is due, under ids that are derived from the
// message and its recipient. Two who look at once, and one who was killed
// before it could note that it had sent, send the same message.
//
// What counts as an answer is a reply of the recipient's, or of whoever took the
// message from a shared inbox, and the ack of the latter: it means that the work
// is done. Any other ack means "I have it", and the answer is still expected.
// What was withdrawn, superseded or has expired is expected no longer.

// DueLook says who looks for answers that are overdue.
type DueLook struct {
	// Between says that the agent is between two turns, Busy that it is not: its
	// hook or its runner looks. Others remind it unless it is known to be busy.
	Between, Busy bool

	// Thorough looks for an answer also where all was said already.
	Thorough bool

	Patience time.Duration // for finding an answer, and four times that for all; 0: as commands have it
	Origin   *wire.Origin
}

const (
	// maxDue is how many overdue messages one look goes into. Which ones changes
	// from look to look where there are more.
	maxDue = 64

	// duePatience bounds how long an answer is looked for that came on a way where
	// nobody noted it: as a dropped file, or before a kill.
	duePatience = 500 * time.Millisecond
)

// Remind sends what is due about the answers that are expected of a member.
// Where nothing is overdue it lists one directory; in a root that may have come
// with a clone it does nothing.
func (t *Team) Remind(ctx context.Context, box *mailbox.Box, look DueLook) error {
	if !t.root.Accepted {
		return nil
	}
	now := time.Now()
	overdue, err := box.Overdue(now)
	if err != nil || len(overdue) == 0 {
		return err
	}
	between := look.Between
	if !between && !look.Busy {
		if between, err = t.restsNow(box); err != nil {
			return err
		}
	}
	if look.Patience == 0 {
		look.Patience = duePatience
	}
	var errs []error
	begin := int(now.UnixNano() % int64(len(overdue)))
	if len(overdue) <= maxDue {
		begin = 0
	}
	for i, tried := 0, 0; i < len(overdue) && tried < maxDue && time.Since(now) < 4*look.Patience; i++ {
		d := overdue[(begin+i)%len(overdue)]
		if d.Told == mailbox.LeadTold && !between {
			continue
		}
		tried++
		if err := t.remindOf(ctx, box, d, between, look); err != nil {
			errs = append(errs, fmt.Errorf("remind %s of %s: %w", box.Agent(), d.ID.Short(6), err))
		}
	}
	return errors.Join(errs...)
}

// RemindAll is Remind for all members. One whose mailbox cannot be looked at
// hides nobody else's.
func (t *Team) RemindAll(ctx context.Context, look DueLook) error {
	boxes, err := t.Boxes()
	errs := []error{err}
	for _, b := range boxes {
		if err := t.Remind(ctx, b, look); err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// restsNow reports whether a member may be reminded by somebody else's look: not
// in the middle of a turn, as far as is known, and not by any but its runner,
// which sees whether it could be typed into.
func (t *Team) restsNow(box *mailbox.Box) (bool, error) {
	m, err := t.Glance(box.Agent())
	switch m.State {
	case reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting:
		return false, err
	}
	return !m.Running, err
}

// remindOf does what is due about one message.
func (t *Team) remindOf(ctx context.Context, box *mailbox.Box, d mailbox.Due, between bool, look DueLook) error {
	it, err := box.Get(d.ID)
	switch {
	case errors.Is(err, mailbox.ErrNotFound):
		return box.ForgetNote(d)
	case err != nil:
		return err
	case !d.Is(it.Message):
		return box.Answered(d.ID, d.At)
	}
	read := it.State == mailbox.Owed || it.State == mailbox.Done
	over := it.State == mailbox.Withdrawn || it.Expired(time.Now())
	switch {
	case over:
	case d.Told == mailbox.AgentTold && !look.Thorough:
		return nil // all was said; an answer is noted when it is sent
	case d.Told == mailbox.LeadTold && !read:
		return nil // it sees that it is overdue when it reads it
	default:
		over, err = t.answered(ctx, box, it, look)
	}
	if err != nil {
		return err
	}
	if over {
		return box.Answered(d.ID, d.At)
	}
	if d.Told == mailbox.NotTold {
		if err := t.Overdue(ctx, box, true, it, look.Origin); err != nil {
			return err
		}
		if err := box.Tell(d, mailbox.LeadTold); err != nil {
			return err
		}
		d.Told = mailbox.LeadTold
	}
	if !read || !between || d.Told == mailbox.AgentTold {
		return nil
	}
	if err := t.Overdue(ctx, box, false, it, look.Origin); err != nil {
		return err
	}
	return box.Tell(d, mailbox.AgentTold)
}

// answered reports whether nobody waits for the answer to a message any more.
func (t *Team) answered(ctx context.Context, box *mailbox.Box, it *mailbox.Item, look DueLook) (bool, error) {
	if it.From.Agent == "drop" {
		return true, nil // nobody can answer what was dropped in nobody's name
	}
	sender, err := t.root.Mailbox(it.From)
	var unknown *UnknownError
	switch {
	case errors.Is(err, ErrNoTeam), errors.Is(err, mailbox.ErrNoAgent), errors.As(err, &unknown):
		return true, nil // nor whom there is not
	case err != nil:
		return false, err
	}
	if ack, err := sender.Get(AckID(it.ID, box.Address())); err == nil && ack.From != box.Address() {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, look.Patience)
	defer cancel()
	// From a shared inbox anybody answers, but for whom it went to themselves.
	shared, err := box.Shared()
	if err != nil {
		return false, err
	}
	by := func(a wire.Address) bool {
		return a == box.Address() || shared && a != it.From && !slices.Contains(it.To, a)
	}
	found, quoted := false, []byte(it.ID)
	_, _, err = sender.Walk(ctx, mailbox.Range{
		Unread: true, Aside: true, Owed: true, Done: true, Archive: true, Newest: true, Since: it.ID.Time().Add(-24 * time.Hour),
		Keep: func(raw []byte) bool { return bytes.Contains(raw, quoted) },
	}, func(r *mailbox.Item) bool {
		found = Answers(r.Message, it.ID) && by(r.From)
		return !found
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil // it was not noted that one came, and there is much mail
	}
	return found, err
}

// Overdue says once that the answer to a message is overdue: to the agent that
// has it, or to its lead; where there is none, to nobody.
func (t *Team) Overdue(ctx context.Context, agent *mailbox.Box, lead bool, it *mailbox.Item, origin *wire.Origin) error {
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
		has := "has not answered"
		if it.State == mailbox.Unread || it.State == mailbox.Aside {
			has = "has not even read"
		}
		say = fmt.Sprintf("%s %s %s from %s, due %s: atm trace %s", agent.Agent(), has, id.Short(6), it.From, wasDue(it.DueAt), id.Short(6))
		purpose = "due-lead"
	}
	return t.tell(ctx, agent, to, &wire.Message{
		// It answers nothing: who waits for the answer is not to take it for one.
		ID: wire.Derive(purpose, id, agent.Address()), Type: wire.TypeNotice, Thread: it.ThreadID(),
		ReplyWanted: "no", Subject: "overdue: " + it.Title(), Body: say, Origin: origin,
		Payload: []byte(`{"overdue":` + string(wire.AppendString(nil, string(id))) + `}`),
	})
}

// wasDue says how long ago an answer was due.
func wasDue(at time.Time) string {
	if ago := mailbox.Age(time.Now(), at); ago != "now" {
		return ago
	}
	return "just now"
}

// dueOf says for trace what is known of the answer that is expected to a message:
// "" where none is, or none any more.
func dueOf(box *mailbox.Box, m *wire.Message, now time.Time) string {
	if m.DueAt.IsZero() {
		return ""
	}
	list, err := box.Overdue(m.DueAt)
	i := slices.IndexFunc(list, func(d mailbox.Due) bool { return d.ID == m.ID && d.Is(m) })
	switch {
	case err != nil || i < 0:
		return ""
	case now.Before(m.DueAt):
		return "an answer is due " + mailbox.Age(now, m.DueAt)
	}
	said := "its answer was due " + wasDue(m.DueAt)
	switch list[i].Told {
	case mailbox.LeadTold:
		said += "; the lead was told, if there is one"
	case mailbox.AgentTold:
		said += fmt.Sprintf("; the lead was told, if there is one, and %s reminded", box.Agent())
	}
	return said
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

// shownOverdue is how many overdue answers of a member are opened to be shown.
const shownOverdue = 200

// OverdueAnswers are the answers of all members that are overdue, the oldest
// first; what is due about them is sent. What cannot be read hides nothing else.
func (t *Team) OverdueAnswers(ctx context.Context, origin *wire.Origin) ([]OverdueAnswer, error) {
	boxes, err := t.Boxes()
	if err != nil {
		return nil, err
	}
	var out []OverdueAnswer
	errs := []error{t.RemindAll(ctx, DueLook{Origin: origin, Thorough: true})}
	for _, b := range boxes {
		list, err := b.Overdue(time.Now())
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			errs = append(errs, err)
		}
		for _, d := range list[:min(len(list), shownOverdue)] {
			if it, err := b.Get(d.ID); err == nil {
				out = append(out, OverdueAnswer{
					ID: d.ID, Agent: b.Agent(), From: it.From.String(), Subject: it.Title(), DueAt: it.DueAt,
					Read: it.State == mailbox.Owed || it.State == mailbox.Done,
				})
			}
		}
	}
	return out, errors.Join(errs...)
}
