package teams

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// owing is a message whose answer is overdue, while one look goes into it.
type owing struct {
	box     *mailbox.Box // who owes the answer
	due     mailbox.Due
	item    *mailbox.Item
	between bool // the agent may be reminded

	over   bool         // nobody waits for the answer any more
	sender *mailbox.Box // in whose mailbox it is looked for; nil: it need not be
	shared bool         // whoever took it may answer
}

// read reports whether its recipient has read the message.
func (o *owing) read() bool { return o.item.State == mailbox.Owed || o.item.State == mailbox.Done }

// by reports whether an answer counts that comes from there. From a shared inbox
// anybody answers, but for whom it went to themselves.
func (o *owing) by(a wire.Address) bool {
	return a == o.box.Address() || o.shared && a != o.item.From && !slices.Contains(o.item.To, a)
}

// settle finds out without opening other messages whether the answer is still
// expected, and else where it is to be looked for.
func (t *Team) settle(o *owing) error {
	it := o.item
	if it.From.Agent == "drop" {
		o.over = true // nobody can answer what was dropped in nobody's name
		return nil
	}
	sender, err := t.root.Mailbox(it.From)
	var unknown *UnknownError
	switch {
	case errors.Is(err, ErrNoTeam), errors.Is(err, mailbox.ErrNoAgent), errors.As(err, &unknown):
		o.over = true // nor whom there is not
		return nil
	case err != nil:
		return err
	}
	if ack, err := sender.Get(AckID(it.ID, o.box.Address())); err == nil && ack.From != o.box.Address() {
		o.over = true
		return nil
	}
	o.sender = sender
	o.shared, err = o.box.Shared()
	return err
}

// lookThrough looks in one mailbox for the answers to all that its owner waits
// for, from the newest message back, until it is too late. An answer is noted
// when it is sent: here those are found that came as dropped files, or before a
// kill.
func lookThrough(ctx context.Context, sender *mailbox.Box, all []*owing, until time.Time) error {
	asked := map[string][]*owing{}
	since := time.Now()
	for _, o := range all {
		id := o.item.ID
		asked[string(id)] = append(asked[string(id)], o)
		if at := id.Time(); at.Before(since) {
			since = at
		}
	}
	late := func() bool { return ctx.Err() != nil || time.Now().After(until) }
	_, _, err := sender.Walk(ctx, mailbox.Range{
		Unread: true, Aside: true, Owed: true, Done: true, Archive: true, Newest: true, Since: since.Add(-24 * time.Hour),
		// What comes when it is late is kept as well: that ends the walk.
		Keep: func(raw []byte) bool { return answersOne(raw, asked) || late() },
	}, func(r *mailbox.Item) bool {
		for _, o := range asked[string(r.InReplyTo)] {
			o.over = o.over || Answers(r.Message, o.item.ID) && o.by(r.From)
		}
		return !late() && slices.ContainsFunc(all, func(o *owing) bool { return !o.over })
	})
	return err
}

// answersOne reports whether a message answers one of those asked, by its text
// alone: to decode each of a full mailbox would take several times as long.
func answersOne(raw []byte, asked map[string][]*owing) bool {
	const key, size = `"in_reply_to"`, len("01234567-89ab-7def-8123-456789abcdef")
	for {
		_, rest, ok := bytes.Cut(raw, []byte(key))
		if !ok {
			return false
		}
		id := bytes.TrimLeft(rest, " \t\r\n:\"")
		if len(id) >= size && asked[string(id[:size])] != nil {
			return true
		}
		raw = rest // a payload may have a key of that name
	}
}
