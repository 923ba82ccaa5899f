package teams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Outgoing is a message to be sent by a member.
type Outgoing struct {
	From    *mailbox.Box
	To      []wire.Address
	All     bool          // To is everybody in the team, and whoever else was named
	Message *wire.Message // what the sender says, under an id of the caller's if it has one; Prepare fills in the rest
	Parent  *wire.Message // what it answers, nil if nothing

	// Person says that a person answers, from a terminal outside an agent's
	// environment: that ends a chain of hops.
	Person bool

	Post   *mailbox.Post // from Prepare: the recipients that there are
	Failed []Failed      // and those that there are not
}

// Failed is a recipient that a message did not reach.
type Failed struct {
	To  wire.Address
	Err error
}

// ErrTooManyHops refuses one more reply to replies that came too fast.
var ErrTooManyHops = errors.New("to an answer within an hour")

// Prepare completes an outgoing message and finds its recipients' mailboxes. Recipients
// that are unknown go to Failed, and are not an error.
func (r *Root) Prepare(o *Outgoing) error {
	m := o.Message
	o.Post = &mailbox.Post{Message: m, Given: m.ID != "", Sender: o.From}
	m.ID = cmp.Or(m.ID, wire.NewID())
	if err := GivenID(m.ID); err != nil {
		return err
	}
	m.From, m.To = o.From.Address(), nil
	m.SentAt = cmp.Or(m.SentAt, time.Now().UTC())
	if p := o.Parent; p != nil {
		m.InReplyTo, m.Thread = p.ID, cmp.Or(m.Thread, p.ThreadID())
		if !o.Person {
			m.Hop = p.NextHop()
		}
		if m.Hop >= wire.MaxHops && time.Since(chainBegan(o)) < time.Hour {
			return fmt.Errorf("this would be answer %d %w", m.Hop, ErrTooManyHops)
		}
	}
	for _, a := range unique(o.To) {
		b, err := r.Mailbox(a)
		if err == nil && a.Host != "" {
			t, _ := r.Team(a.Team)
			if _, unknown := t.Remote(a.Agent, a.Host); errors.Is(unknown, mailbox.ErrNoAgent) {
				err = unknown // rows that cannot be read hold nothing back
			} else if a.Team != m.From.Team {
				err = fmt.Errorf("%s: another host's members are reached from their own team", a)
			}
		}
		if err != nil {
			o.Failed = append(o.Failed, Failed{a, err})
			continue
		}
		m.To = append(m.To, a)
		o.Post.To = append(o.Post.To, b)
	}
	return mailbox.Check(m)
}

// chainBegan is when the newest MaxHops answers of a chain began: as far as the sender's own mail shows it, else with
// the thread. A chain that ends before has not that many, whatever a message says of itself: the zero time.
func chainBegan(o *Outgoing) time.Time {
	at := o.Parent
	for range wire.MaxHops - 2 {
		if at.InReplyTo == "" {
			return time.Time{}
		}
		if at = OwnMessage(o.From, at.InReplyTo); at == nil {
			return o.Message.ThreadID().Time()
		}
	}
	return at.SentAt
}

// PrepareAll is Prepare where a recipient that is unknown is an error.
func (r *Root) PrepareAll(o *Outgoing) error {
	if err := r.Prepare(o); err != nil || len(o.Failed) == 0 {
		return err
	}
	return o.Failed[0].Err
}

// Once, after Prepare, gives a message the id that belongs to its sender's key: the same key, recipients and message
// answered always give the same id. Everybody is one recipient, whoever is in the team just now.
func (o *Outgoing) Once(name string) error {
	key := &mailbox.IdempotencyKey{Name: name}
	team := o.From.Address().Team
	if o.All {
		key.To = []string{"all@" + string(team)}
	}
	for _, a := range unique(o.To) {
		if !o.All || a.Team != team || a.Host != "" {
			key.To = append(key.To, a.String())
		}
	}
	slices.Sort(key.To)
	if o.Parent != nil {
		key.Re = o.Parent.ID
	}
	if _, err := o.From.Once(key); err != nil {
		return fmt.Errorf("note that %q is sent once: %w", name, err)
	}
	o.Message.ID, o.Post.Given = key.ID, true
	return nil
}

// Deliver, after Prepare, delivers a message and marks what it answers once the sender of that has the answer, or
// somebody where it is one's own (MarkAnswered, whose error it returns). What became of it at each recipient is in
// Post.Outcomes.
func (r *Root) Deliver(ctx context.Context, o *Outgoing) error {
	mailbox.Deliver(ctx, o.Post)
	for _, out := range o.Post.Outcomes {
		if o.Parent == nil || out.Err != nil {
			continue
		}
		if from := o.Parent.From; from == out.Box.Address() || from == o.From.Address() {
			return r.MarkAnswered(ctx, o.From, o.Parent)
		}
	}
	return nil
}

// Unmarked says in words that a message was sent, and why what it answers is not marked.
func Unmarked(err error) string {
	if _, isLeased := errors.AsType[*mailbox.LeasedError](err); isLeased || errors.Is(err, mailbox.ErrNotHeld) {
		return fmt.Sprintf("sent, but it is no ack: %v", err)
	}
	return fmt.Sprintf("sent; the message answered: %v", err)
}

// Send prepares and delivers a message to one recipient or more. Its error is that of every recipient that the message
// did not reach; where one is unknown, it is sent to nobody.
func (r *Root) Send(ctx context.Context, o *Outgoing) error {
	if err := r.PrepareAll(o); err != nil {
		return err
	}
	if len(o.Post.To) == 0 {
		return errors.New("send a message: it has no recipient")
	}
	mailbox.Deliver(ctx, o.Post)
	var errs []error
	for _, out := range o.Post.Outcomes {
		errs = append(errs, out.Err)
	}
	return errors.Join(errs...)
}

func unique(in []wire.Address) (out []wire.Address) {
	for _, a := range in {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// GivenID checks an id that a caller brings: version 7 and at most a day ahead of the clock.
func GivenID(id wire.ID) error {
	if !wire.IsID(string(id)) {
		return fmt.Errorf("%q is not a UUIDv7", id)
	}
	if id.Time().After(time.Now().Add(24 * time.Hour)) {
		return fmt.Errorf("id %s is more than a day ahead of the clock", id)
	}
	return nil
}

// ReplyTo is whom an answer goes to: the sender, or with all everybody. An answer to one's own message goes to those
// that it went to; where one has taken it oneself, the answer finishes it and goes to its sender as any other, and so
// does the next.
func (r *Root) ReplyTo(ctx context.Context, parent *wire.Message, box *mailbox.Box, all bool) []wire.Address {
	to, me := []wire.Address{parent.From}, box.Address()
	hasTaken := func() bool { // of one's own messages alone: it looks through the mailbox
		from, err := r.Taken(box, parent, me)
		return from != nil && err == nil || len(Replies(ctx, box, parent.ID, me)) > 0
	}
	if all || parent.From == me && !hasTaken() {
		to = append(to, parent.To...)
	}
	others := slices.DeleteFunc(unique(to), func(a wire.Address) bool { return a == me })
	if len(others) == 0 {
		return []wire.Address{me}
	}
	return others
}

// MarkAnswered does with the message that an answer answers, which was delivered, what the answer means: it is read,
// and an acknowledgement that was owed is given; what was taken under a lease is finished. *mailbox.LeasedError,
// mailbox.ErrNotHeld: it is no ack, since the message is somebody else's now.
func (r *Root) MarkAnswered(ctx context.Context, me *mailbox.Box, parent *wire.Message) error {
	taken, takenErr := r.Taken(me, parent, me.Address())
	if taken != nil && takenErr == nil {
		return taken.MarkAcked(ctx, parent.ID, me.Address(), true)
	}
	it, err := me.Get(parent.ID)
	switch {
	case errors.Is(err, mailbox.ErrNotFound): // a colleague's, or what somebody else has taken
		return takenErr
	case err != nil:
		return err
	case parent.RequiresAck && (it.State == mailbox.Unread || it.State == mailbox.Owed):
		return me.MarkAcked(ctx, parent.ID, me.Address(), true)
	case it.State == mailbox.Unread:
		return me.MarkRead(ctx, parent.ID)
	}
	return nil
}
