package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Acked is what became of an acknowledgement.
type Acked struct {
	Post      *mailbox.Post // nil when none was sent
	NoMailbox bool          // the sender has none here
	Already   bool          // it was acknowledged before, or by an answer
	Differs   bool          // and with another text
	Unlogged  error         // it could not be noted among the events
}

// AckID is the id of a recipient's acknowledgement of a message.
func AckID(id wire.ID, recipient wire.Address) wire.ID { return wire.Derive("ack", id, recipient) }

// Ack acknowledges a message: the ack is delivered to its sender, durably, and only then
// is the debt cleared. The same message acknowledged twice is one ack, since its id is
// derived.
func (r *Root) Ack(ctx context.Context, me *mailbox.Box, m *wire.Message, text string, origin *wire.Origin) (Acked, error) {
	return r.ack(ctx, me, me.Address(), m, text, origin)
}

// ack is Ack for a message in box, by whoever owns or holds it.
func (r *Root) ack(ctx context.Context, box *mailbox.Box, by wire.Address, m *wire.Message, text string, origin *wire.Origin) (Acked, error) {
	it, err := box.Get(m.ID)
	if err != nil {
		return Acked{}, err
	}
	if it.Lease != nil && it.Lease.By != by { // before the sender gets it
		return Acked{}, &mailbox.LeasedError{ID: m.ID, By: it.Lease.By, Until: it.Lease.Until}
	}
	ack := &wire.Message{
		ID: AckID(m.ID, box.Address()), Type: wire.TypeAck, From: by, To: []wire.Address{m.From},
		InReplyTo: m.ID, Thread: m.ThreadID(), Body: text, ReplyWanted: "no", SentAt: time.Now().UTC(), Hop: m.Hop + 1, Origin: origin,
	}
	sender, err := r.Mailbox(m.From)
	if errors.Is(err, mailbox.ErrNoAgent) || errors.Is(err, ErrNoTeam) || m.From.Agent == "drop" {
		a := Acked{Already: it.State == mailbox.Done, NoMailbox: true}
		return a, a.markAcked(ctx, box, by, m.ID)
	}
	if err != nil {
		return Acked{}, err
	}
	before, err := sender.Get(ack.ID)
	if m.RequiresAck && it.State == mailbox.Done && errors.Is(err, mailbox.ErrNotFound) {
		return Acked{Already: true}, nil // by an answer
	}
	a := Acked{Post: &mailbox.Post{Message: ack, To: []*mailbox.Box{sender}, Given: true, Sender: box}}
	mailbox.Deliver(ctx, a.Post)
	out := a.Post.Outcomes[0]
	if out.Err != nil {
		return a, out.Err
	}
	a.Already = out.Known
	a.Differs = out.Known && before != nil && text != "" && before.Body != text
	return a, a.markAcked(ctx, box, by, m.ID)
}

// markAcked clears the debt. It keeps the error of the event log apart: the ack was given.
func (a *Acked) markAcked(ctx context.Context, box *mailbox.Box, by wire.Address, id wire.ID) error {
	err := box.MarkAcked(ctx, id, by, !a.NoMailbox)
	var unlogged *mailbox.UnloggedError
	if errors.As(err, &unlogged) {
		a.Unlogged, err = unlogged, nil
	}
	return err
}

// AckedBy reports whether every recipient has acknowledged a message of mine, by an ack
// or by an answer, and gives the last evidence of it.
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
		replies := Replies(ctx, me, m.ID, a)
		if len(replies) == 0 {
			return nil, false
		}
		last = replies[0]
	}
	return last, len(m.To) > 0
}

// Withdrawal is what became of a withdrawal at one recipient.
type Withdrawal struct {
	To    wire.Address
	State mailbox.State // Unread: withdrawn now; Withdrawn: before; Done, Owed: read already, a notice was sent; "": acknowledged, refused
	Err   error
}

// Withdraw takes a message of mine out of the inboxes where it is unread. A recipient
// that has read it gets a notice; one that has acknowledged it keeps it.
func (r *Root) Withdraw(ctx context.Context, me *mailbox.Box, m *wire.Message, origin *wire.Origin) (out []Withdrawal) {
	for _, a := range m.To {
		w := Withdrawal{To: a}
		w.State, w.Err = r.withdrawFrom(ctx, me, m, a, origin)
		out = append(out, w)
	}
	return out
}

func (r *Root) withdrawFrom(ctx context.Context, me *mailbox.Box, m *wire.Message, a wire.Address, origin *wire.Origin) (mailbox.State, error) {
	b, err := r.Mailbox(a)
	if err != nil {
		return "", err
	}
	if _, err := me.Get(AckID(m.ID, a)); err == nil {
		return "", nil // acknowledged, wherever it lies now
	}
	to := b.Address() // or whoever has taken it
	if it, err := b.Get(m.ID); err == nil && it.Lease != nil {
		to = it.Lease.By
	}
	state, err := b.Withdraw(ctx, m.ID, me.Address())
	if err != nil || state == mailbox.Unread || state == mailbox.Withdrawn {
		return state, err
	}
	if state == mailbox.Done && m.RequiresAck {
		return "", nil
	}
	return state, r.deliver(ctx, &Outgoing{From: me, To: []wire.Address{to}, Given: true, Message: &wire.Message{
		ID: wire.Derive("withdrawn", m.ID, me.Address()), Type: wire.TypeNotice,
		InReplyTo: m.ID, Thread: m.ThreadID(), ReplyWanted: "no", Origin: origin,
		Body:    fmt.Sprintf("I withdrew my message %s, which you have read. Please do not act on it.", m.ID.Short(6)),
		Payload: json.RawMessage(`{"withdrawn":` + string(wire.Quote(string(m.ID))) + `}`),
	}})
}

// ErrNotShared says that an inbox is its owner's alone: nobody else takes from it.
var ErrNotShared = errors.New("is not shared: only its owner takes from it")

// MayTake reports why a member may not take from an inbox under a lease: from one's own
// always, from another's of the same team when it is shared.
func MayTake(box *mailbox.Box, by wire.Address) error {
	if box.Address() == by {
		return nil
	}
	shared, err := box.Shared()
	if err == nil && (!shared || by.Team != box.Address().Team) {
		err = fmt.Errorf("the inbox of %s %w", box.Agent(), ErrNotShared)
	}
	return err
}

// ackLease is how long a message stays its holder's at least while its ack is under way.
const ackLease = 30 * time.Second

// AckTaken is Ack for a message in box that by took under a lease: the ack reaches the
// sender, then the lease and the debt end. Nobody else can take the message in between.
// *mailbox.LeasedError or mailbox.ErrNotHeld where by does not hold it.
func (r *Root) AckTaken(ctx context.Context, box *mailbox.Box, by wire.Address, m *wire.Message, text string, origin *wire.Origin) (Acked, error) {
	if _, err := box.RenewLease(ctx, m.ID, by, ackLease); err != nil {
		return Acked{}, err
	}
	return r.ack(ctx, box, by, m, text, origin)
}

// LeaseFlags is what is shown of a message's lease.
func LeaseFlags(it *mailbox.Item) letter.Flags {
	f := letter.Flags{TimesTaken: it.Times}
	if it.Lease != nil {
		f.TakenBy, f.TakenUntil = it.Lease.By, it.Lease.Until
	}
	return f
}
