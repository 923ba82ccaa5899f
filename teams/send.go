package teams

import (
	"context"
	"encoding/json"
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
	Message *wire.Message // what the sender says; the rest is filled in
	Given   bool          // Message.ID was brought by the caller
	Parent  *wire.Message // what it answers, nil if nothing

	// Person says that a person writes, from a terminal outside an agent's
	// environment: their answer ends a chain of hops.
	Person bool

	Post   *mailbox.Post // filled in by Prepare: the recipients that there are
	Failed []Failed      // and those that there are not
}

// Failed is a recipient whom a message did not reach.
type Failed struct {
	To  wire.Address
	Err error
}

// HopError is the hop brake: too many replies to replies within an hour.
type HopError struct{ Hops int }

func (e *HopError) Error() string {
	return fmt.Sprintf("this would be answer %d to an answer within an hour", e.Hops)
}

// hopWindow is the time within which MaxHops answers are too many.
const hopWindow = time.Hour

// Prepare completes an outgoing message and finds its recipients' mailboxes.
// Recipients that are unknown go to Failed, and are not an error.
func (r *Root) Prepare(o *Outgoing) error {
	m := o.Message
	if m.ID == "" {
		m.ID = wire.NewID()
	}
	if o.Given {
		if err := GivenID(m.ID); err != nil {
			return err
		}
	}
	m.From = o.From.Address()
	if m.SentAt.IsZero() {
		m.SentAt = time.Now().UTC()
	}
	if p := o.Parent; p != nil {
		m.InReplyTo = p.ID
		if m.Thread == "" {
			m.Thread = p.ThreadID()
		}
		if !o.Person {
			m.Hop = p.Hop + 1
			if err := r.brake(o); err != nil {
				return err
			}
		}
	}
	o.Post = &mailbox.Post{Message: m, Given: o.Given, Sender: o.From}
	m.To = nil
	for _, a := range dedupe(o.To) {
		b, err := r.Mailbox(a)
		if err != nil {
			o.Failed = append(o.Failed, Failed{a, err})
			continue
		}
		m.To = append(m.To, a)
		o.Post.To = append(o.Post.To, b)
	}
	return mailbox.Check(m)
}

// Once makes a prepared message the one that its sender sends under a name of
// their own: the same name, recipients and message answered always give the same
// id. known says that the name was used before; the message may have arrived or
// not.
func (o *Outgoing) Once(name string) (known bool, err error) {
	key := &mailbox.IdempotencyKey{Name: name}
	for _, a := range dedupe(o.To) {
		key.To = append(key.To, a.String())
	}
	slices.Sort(key.To)
	if o.Parent != nil {
		key.Re = o.Parent.ID
	}
	if known, err = o.From.Once(key); err != nil {
		return known, fmt.Errorf("note that %q is sent once: %w", name, err)
	}
	o.Message.ID, o.Given, o.Post.Given = key.ID, true, true
	return known, nil
}

func dedupe(in []wire.Address) []wire.Address {
	var out []wire.Address
	for _, a := range in {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// GivenID checks an id that a caller brings: version 7 and at most a day ahead
// of the clock.
func GivenID(id wire.ID) error {
	if !wire.IsID(string(id)) {
		return fmt.Errorf("%q is not a UUIDv7", id)
	}
	if id.Time().After(time.Now().Add(24 * time.Hour)) {
		return fmt.Errorf("id %s is more than a day ahead of the clock", id)
	}
	return nil
}

// brake refuses an answer whose last MaxHops ancestors fell within an hour.
// The chain is followed as far as the sender's own mail shows it.
func (r *Root) brake(o *Outgoing) error {
	if o.Message.Hop < wire.MaxHops {
		return nil
	}
	began := o.Message.ThreadID().Time()
	at := o.Parent
	for range wire.MaxHops - 1 {
		began = at.SentAt
		if at.InReplyTo == "" {
			break
		}
		next := r.Own(o.From, at.InReplyTo)
		if next == nil {
			began = o.Message.ThreadID().Time()
			break
		}
		at = next
	}
	if time.Since(began) < hopWindow {
		return &HopError{o.Message.Hop}
	}
	return nil
}

// Own is a message that a mailbox's owner got or sent, nil if neither.
func (r *Root) Own(b *mailbox.Box, id wire.ID) *wire.Message {
	if it, err := b.Get(id); err == nil {
		return it.Message
	}
	m, _ := b.Sent(id)
	return m
}

// Reply fills in the recipients of an answer: the sender, or everybody with
// all. An answer to one's own message goes to whom that went to.
func Reply(parent *wire.Message, me wire.Address, all bool) []wire.Address {
	to := []wire.Address{parent.From}
	if parent.From == me {
		to = slices.Clone(parent.To)
	} else if all {
		to = append(to, parent.To...)
	}
	to = dedupe(to)
	if len(to) > 1 {
		to = slices.DeleteFunc(to, func(a wire.Address) bool { return a == me })
	}
	return to
}

// Answered does what an answer does to the message it answers, in the
// answerer's mailbox, after it has been delivered: the message is read, and an
// acknowledgement that was owed is given.
func Answered(ctx context.Context, me *mailbox.Box, parent *wire.Message) error {
	it, err := me.Get(parent.ID)
	if errors.Is(err, mailbox.ErrNotFound) {
		return nil // one's own message, or a colleague's
	}
	if err != nil {
		return err
	}
	switch {
	case parent.RequiresAck && (it.State == mailbox.Unread || it.State == mailbox.Owed):
		err = me.MarkAcked(ctx, parent.ID, me.Address(), true)
		var leased *mailbox.LeasedError
		if errors.As(err, &leased) {
			return nil // who holds it goes on
		}
		return err
	case it.State == mailbox.Unread:
		_, err = me.MarkRead(ctx, parent.ID)
	}
	return err
}

// Acked is what became of an acknowledgement.
type Acked struct {
	Post      *mailbox.Post // nil when none was sent
	NoMailbox bool          // the sender has none here
	Already   bool          // it was acknowledged before, or by an answer
	Differs   bool          // and with another text
	Unlogged  error         // it could not be noted among the events
}

// Ack acknowledges a message: the ack is delivered to its sender, durably, and
// only then is the debt cleared. The same message acknowledged twice is one
// ack, since its id is derived.
func (r *Root) Ack(ctx context.Context, me *mailbox.Box, m *wire.Message, text string, origin *wire.Origin) (Acked, error) {
	return r.ack(ctx, me, me.Address(), m, text, origin, func(delivered bool) error { return me.MarkAcked(ctx, m.ID, me.Address(), delivered) })
}

// ack is Ack for a message in me's mailbox, by whoever does it for me; settle
// clears the debt.
func (r *Root) ack(ctx context.Context, me *mailbox.Box, by wire.Address, m *wire.Message, text string, origin *wire.Origin, settle func(delivered bool) error) (Acked, error) {
	var a Acked
	ack := &wire.Message{
		ID: AckID(m.ID, me.Address()), Type: wire.TypeAck, From: by, To: []wire.Address{m.From},
		InReplyTo: m.ID, Thread: m.ThreadID(), Body: text, ReplyWanted: "no", SentAt: time.Now().UTC(), Hop: m.Hop + 1, Origin: origin,
	}
	it, err := me.Get(m.ID)
	if err != nil {
		return a, err
	}
	// Before the sender hears of it.
	if it.Lease != nil && it.Lease.By != by {
		return a, &mailbox.LeasedError{ID: m.ID, By: it.Lease.By, Until: it.Lease.Until}
	}
	sender, err := r.Mailbox(m.From)
	if err == nil && m.RequiresAck && it.State == mailbox.Done {
		if _, e := sender.Get(ack.ID); errors.Is(e, mailbox.ErrNotFound) {
			return Acked{Already: true}, nil // by an answer
		}
	}
	switch {
	case errors.Is(err, mailbox.ErrNoAgent), errors.Is(err, ErrNoTeam), m.From.Agent == "drop":
		a = Acked{Already: it.State == mailbox.Done, NoMailbox: true}
		err := a.settle(settle(false))
		return a, err
	case err != nil:
		return a, err
	}
	a.Post = &mailbox.Post{Message: ack, To: []*mailbox.Box{sender}, Given: true, Sender: me}
	mailbox.Deliver(ctx, a.Post)
	out := a.Post.Outcomes[0]
	if out.Err != nil {
		return a, out.Err
	}
	if out.Known {
		a.Already = true
		if before, err := sender.Get(ack.ID); err == nil {
			a.Differs = text != "" && before.Body != text
		}
	}
	err = a.settle(settle(true))
	return a, err
}

// settle keeps the error of the event log apart: the ack was given.
func (a *Acked) settle(err error) error {
	var u *mailbox.UnloggedError
	if errors.As(err, &u) {
		a.Unlogged, err = u, nil
	}
	return err
}

// AckID is the id of a recipient's acknowledgement of a message.
func AckID(id wire.ID, recipient wire.Address) wire.ID { return wire.Derive("ack", id, recipient) }

// AckedBy reports whether every recipient has acknowledged a message of mine,
// by an ack or by an answer, and gives the last evidence of it.
func (r *Root) AckedBy(ctx context.Context, m *wire.Message, me *mailbox.Box) (last *mailbox.Item, all bool) {
	for _, a := range m.To {
		if it, err := me.Get(AckID(m.ID, a)); err == nil {
			last = it
			continue
		}
		if b, err := r.Mailbox(a); err == nil && m.RequiresAck {
			if it, err := b.Get(m.ID); err == nil && it.State == mailbox.Done {
				continue // only an ack or an answer settles what asked for one
			}
		}
		if replies := Replies(ctx, me, m.ID, a); len(replies) > 0 {
			last = replies[0]
			continue
		}
		return nil, false
	}
	return last, len(m.To) > 0
}

// Withdrawal is what became of a withdrawal at one recipient.
type Withdrawal struct {
	To    wire.Address
	State mailbox.State // Unread: withdrawn now; Withdrawn: before; Done, Owed: read already, a notice was sent; "": acknowledged, refused
	Err   error
}

// Withdraw takes a message of mine back: out of the inboxes where it is
// unread. Who has read it gets a notice; who has acknowledged it keeps it.
func (r *Root) Withdraw(ctx context.Context, me *mailbox.Box, m *wire.Message, origin *wire.Origin) []Withdrawal {
	out := make([]Withdrawal, len(m.To))
	notice := &mailbox.Post{Given: true, Sender: me, Message: &wire.Message{
		ID: wire.Derive("withdrawn", m.ID, me.Address()), Type: wire.TypeNotice, From: me.Address(),
		InReplyTo: m.ID, Thread: m.ThreadID(), ReplyWanted: "no", SentAt: time.Now().UTC(), Origin: origin,
		Body:    fmt.Sprintf("I withdrew my message %s, which you have read. Please do not act on it.", m.ID.Short(6)),
		Payload: json.RawMessage(`{"withdrawn":` + string(wire.Quote(string(m.ID))) + `}`),
	}}
	told := map[int]int{} // which outcome of the notice is whose
	for i, a := range m.To {
		w := &out[i]
		w.To = a
		b, err := r.Mailbox(a)
		if err != nil {
			w.Err = err
			continue
		}
		if _, err := me.Get(AckID(m.ID, a)); err == nil {
			continue // acknowledged, wherever it lies now
		}
		reader := b
		if by := r.holder(b, m.ID); by != nil {
			reader = by // who works on it is to be told
		}
		w.State, w.Err = b.Withdraw(ctx, m.ID, me.Address())
		switch {
		case w.Err != nil || w.State == mailbox.Unread || w.State == mailbox.Withdrawn:
		case w.State == mailbox.Done && m.RequiresAck:
			w.State = ""
		default:
			told[i] = len(notice.To)
			notice.To = append(notice.To, reader)
			notice.Message.To = append(notice.Message.To, reader.Address())
		}
	}
	if len(notice.To) > 0 {
		mailbox.Deliver(ctx, notice)
		for i, n := range told {
			out[i].Err = notice.Outcomes[n].Err
		}
	}
	return out
}
