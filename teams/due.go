package teams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
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

	// Reading says that the member is about to read what it has not read: that is
	// left alone.
	Reading bool

	// Thorough looks for an answer also where all was said already.
	Thorough bool

	Patience time.Duration // for finding answers, and again for telling; 0: as commands have it
	Origin   *wire.Origin
}

const (
	// maxDue is how many overdue messages one look goes into of which nobody was
	// told, and how many others. Which ones changes from look to look where there
	// are more.
	maxDue = 64

	// duePatience bounds how long one look, at however many members, searches for
	// answers, and then how long it tells of those that it did not find.
	duePatience = 200 * time.Millisecond

	// After an answer was looked for in vain where all was said already, that rests
	// so many times as long as it took, and at most so long.
	restsTimes = 100
	restsMost  = 10 * time.Minute
)

// Remind sends what is due about the answers that are expected of a member.
// Where nothing is overdue it lists one directory; in a root that may have come
// with a clone it does nothing.
func (t *Team) Remind(ctx context.Context, box *mailbox.Box, look DueLook) error {
	return t.remind(ctx, []*mailbox.Box{box}, look)
}

// RemindAll is Remind for all members, with the patience of one. One whose
// mailbox cannot be looked at hides nobody else's.
func (t *Team) RemindAll(ctx context.Context, look DueLook) error {
	boxes, err := t.Boxes()
	return errors.Join(err, t.remind(ctx, boxes, look))
}

func (t *Team) remind(ctx context.Context, boxes []*mailbox.Box, look DueLook) error {
	if !t.root.Accepted {
		return nil
	}
	if look.Patience == 0 {
		look.Patience = duePatience
	}
	began := time.Now()
	var errs []error
	var untold, told []*owing
	for _, b := range boxes {
		overdue, err := b.Overdue(began)
		between := look.Between
		if len(overdue) > 0 && err == nil && !between && !look.Busy {
			between, err = t.restsNow(b)
		}
		if err != nil {
			if len(boxes) == 1 || !errors.Is(err, mailbox.ErrNoAgent) { // of all, one may be retired meanwhile
				errs = append(errs, err)
			}
			continue
		}
		for _, d := range overdue {
			o := &owing{box: b, due: d, between: between}
			switch {
			case d.Told == mailbox.NotTold:
				untold = append(untold, o)
			case d.Told != mailbox.LeadTold || between:
				told = append(told, o)
			}
		}
	}
	all := append(atMost(maxDue, untold, began), atMost(maxDue, told, began)...)
	failed := func(o *owing, err error) {
		errs = append(errs, fmt.Errorf("remind %s of %s: %w", o.box.Agent(), o.due.ID.Short(6), err))
	}
	all = slices.DeleteFunc(all, func(o *owing) bool {
		goOn, err := t.examine(o, look)
		if err != nil {
			failed(o, err)
		}
		return !goOn || err != nil
	})
	all, err := search(ctx, all, began.Add(look.Patience))
	errs = append(errs, err)
	searched := time.Now()
	for i, o := range all {
		if i > 0 && time.Since(searched) > look.Patience || ctx.Err() != nil {
			break
		}
		if err := t.remindOf(ctx, o, look); err != nil {
			failed(o, err)
		}
	}
	return errors.Join(errs...)
}

// atMost is all of them, or so many from somewhere on.
func atMost(n int, all []*owing, now time.Time) []*owing {
	if len(all) <= n {
		return all
	}
	begin := int(now.UnixNano() % int64(len(all)))
	return append(slices.Clone(all[begin:]), all[:begin]...)[:n]
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

// examine opens a message, and reports whether there is more to be done about
// it. Where an answer is to be looked for, the sender is set.
func (t *Team) examine(o *owing, look DueLook) (goOn bool, err error) {
	d := o.due
	if look.Thorough && d.Told == mailbox.AgentTold && o.box.Rests(d, time.Now(), restsMost) {
		return false, nil
	}
	o.item, err = o.box.Get(d.ID)
	switch {
	case errors.Is(err, mailbox.ErrNotFound):
		return false, o.box.ForgetNote(d)
	case err != nil:
		return false, err
	case !d.Is(o.item.Message):
		return false, o.box.Answered(d.ID, d.At)
	case o.item.State == mailbox.Withdrawn, o.item.Expired(time.Now()):
		o.over = true
		return true, nil
	case look.Reading && !o.read():
		return false, nil
	case d.Told == mailbox.AgentTold && !look.Thorough:
		return false, nil // all was said; an answer is noted when it is sent
	case d.Told == mailbox.LeadTold && !o.read():
		return false, nil // it sees that it is overdue when it reads it
	}
	return true, t.settle(o)
}

// search looks for the answers that are to be looked for, once through the
// mailbox of each who waits for some, and returns those about which it can be
// said now. For whom no time is left, the next look comes to: it has less to
// look for.
func search(ctx context.Context, all []*owing, until time.Time) (known []*owing, err error) {
	bySender := map[wire.Address][]*owing{}
	var order []wire.Address
	for _, o := range all {
		if o.sender == nil {
			known = append(known, o)
			continue
		}
		a := o.sender.Address()
		if bySender[a] == nil {
			order = append(order, a)
		}
		bySender[a] = append(bySender[a], o)
	}
	var errs []error
	for i, a := range order {
		began := time.Now()
		if i > 0 && began.After(until) {
			break
		}
		some := bySender[a]
		if err := lookThrough(ctx, some[0].sender, some, until); err != nil {
			errs = append(errs, fmt.Errorf("look for answers in the mailbox of %s: %w", a, err))
			continue
		}
		if ctx.Err() != nil {
			break // cut short: what was not found may be there
		}
		known = append(known, some...)
		rest := time.Now().Add(min(restsTimes*time.Since(began), restsMost))
		for _, o := range some {
			if o.due.Told == mailbox.AgentTold && !o.over {
				o.box.Rest(o.due, rest)
			}
		}
	}
	return known, errors.Join(errs...)
}

// remindOf says what is due about one message, once it is known whether it has
// its answer.
func (t *Team) remindOf(ctx context.Context, o *owing, look DueLook) error {
	d := o.due
	if o.over {
		return o.box.Answered(d.ID, d.At)
	}
	if d.Told == mailbox.NotTold {
		if err := t.Overdue(ctx, o.box, true, o.item, look.Origin); err != nil {
			return err
		}
		if err := o.box.Tell(d, mailbox.LeadTold); err != nil {
			return err
		}
		d.Told = mailbox.LeadTold
	}
	if !o.read() || !o.between || d.Told == mailbox.AgentTold {
		return nil
	}
	if err := t.Overdue(ctx, o.box, false, o.item, look.Origin); err != nil {
		return err
	}
	return o.box.Tell(d, mailbox.AgentTold)
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
	if ago := letter.Age(time.Now(), at); ago != "now" {
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
		return "an answer is due " + letter.Age(now, m.DueAt)
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
