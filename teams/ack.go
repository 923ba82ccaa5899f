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
	Post    *mailbox.Post // nil when none was sent
	Already bool          // it was acknowledged before, or by an answer
	Notes   []string      // what the one who acknowledges is to be told
}

// ackLease is how long a message stays its holder's at least while its ack is under way.
const ackLease = 30 * time.Second

// Ack acknowledges a message in box, by its owner or by the member that took it under a lease (else
// *mailbox.LeasedError or mailbox.ErrNotHeld): the ack is delivered to its sender, durably, and only then are the debt
// and the lease cleared. The same message acknowledged twice is one ack, since its id is derived. Where the sender was
// quicker to withdraw the message (mailbox.ErrWithdrawn), the ack is withdrawn as well while it is unread.
func (r *Root) Ack(ctx context.Context, box *mailbox.Box, by wire.Address, m *wire.Message, text string, origin *wire.Origin) (a Acked, err error) {
	it, err := box.Get(m.ID)
	if err == nil && (it.Lease != nil || by != box.Address() && it.State != mailbox.Done) {
		_, err = box.RenewLease(ctx, m.ID, by, ackLease) // nobody else can take it in between
	}
	if err != nil {
		return a, err
	}
	sender, err := r.Mailbox(m.From)
	hasNone := errors.Is(err, mailbox.ErrNoAgent) || errors.Is(err, ErrNoTeam) || m.From.Agent == "drop"
	if err != nil && !hasNone {
		return a, err
	}
	if hasNone {
		a.Already = it.State == mailbox.Done
		a.Notes = append(a.Notes, fmt.Sprintf("%s has no mailbox here, and is not told", m.From))
	} else {
		isSent, err := a.deliver(ctx, sender, box, it, &wire.Message{
			ID: wire.AckID(m.ID, box.Address()), Type: wire.TypeAck, From: by, To: []wire.Address{m.From}, InReplyTo: m.ID,
			Thread: m.ThreadID(), Body: text, ReplyWanted: "no", SentAt: time.Now().UTC(), Hop: m.NextHop(), Origin: origin,
		})
		if err != nil || !isSent {
			return a, err
		}
	}
	err = box.MarkAcked(ctx, m.ID, by, !hasNone)
	if errors.Is(err, mailbox.ErrWithdrawn) && !hasNone {
		sender.Withdraw(ctx, a.Post.Message.ID, by, true) // one that was read stays
	}
	if unlogged, ok := errors.AsType[*mailbox.UnloggedError](err); ok { // the ack was given
		a.Notes, err = append(a.Notes, unlogged.Error()), nil
	}
	return a, err
}

func (a *Acked) deliver(ctx context.Context, sender, box *mailbox.Box, it *mailbox.Item, ack *wire.Message) (isSent bool, err error) {
	before, err := sender.Get(ack.ID)
	if it.RequiresAck && it.State == mailbox.Done && errors.Is(err, mailbox.ErrNotFound) {
		a.Already = true
		if ack.Body != "" {
			a.Notes = append(a.Notes, fmt.Sprintf("it was answered before, and your text is not sent: atm reply %s \"…\"", it.ID.Short(6)))
		}
		return false, nil
	}
	a.Post = &mailbox.Post{Message: ack, To: []*mailbox.Box{sender}, Given: true, Sender: box}
	mailbox.Deliver(ctx, a.Post)
	out := a.Post.Outcomes[0]
	a.Already = out.Known
	if out.Known && before != nil && ack.Body != "" && before.Body != ack.Body {
		const note = "it was acknowledged before with another text, which stays: atm reply %s \"…\""
		a.Notes = append(a.Notes, fmt.Sprintf(note, it.ID.Short(6)))
	}
	return true, out.Err
}

// AckOf is a recipient's ack of a message, in its sender's mailbox. Its id says whose it is, and another host may
// have written one with that. One that was withdrawn is none.
func AckOf(sender *mailbox.Box, id wire.ID, a wire.Address) (*mailbox.Item, error) {
	it, err := sender.Get(wire.AckID(id, a))
	if err == nil && (it.From.Host != a.Host || it.State == mailbox.Withdrawn) {
		err = mailbox.ErrNotFound
	}
	return it, err
}

// AckedBy is the last evidence that recipients have acknowledged a message of mine, by an ack or by an
// answer, and who has not yet.
func (r *Root) AckedBy(ctx context.Context, m *wire.Message, me *mailbox.Box) (last *mailbox.Item, missing []wire.Address) {
	for _, a := range m.To {
		if it, err := AckOf(me, m.ID, a); err == nil {
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
		} else {
			missing = append(missing, a)
		}
	}
	return last, missing
}

// Withdraw takes a message of mine out of the inbox of a recipient where it is unread (Unread: now; Withdrawn: before).
// A recipient that has read it gets a notice (Owed, Done), before its debt ends: cut short, it is done again. One that
// has acknowledged it keeps it: "". What somebody has taken stays theirs: *mailbox.LeasedError.
func (r *Root) Withdraw(ctx context.Context, me *mailbox.Box, m *wire.Message, from wire.Address, origin *wire.Origin) (mailbox.State, error) {
	b, err := r.Mailbox(from)
	if err != nil {
		return "", err
	}
	if _, err := AckOf(me, m.ID, from); err == nil {
		return "", nil // acknowledged, wherever it lies now
	}
	state, err := b.Withdraw(ctx, m.ID, me.Address(), false)
	notice, has := wire.Derive("withdrawn", m.ID, me.Address()), "which you have read"
	if from.Host != "" { // the members of a host share an outbox: each has a notice of its own
		notice, has = wire.Derive("withdrawn", m.ID, from), "which was on its way to you"
		if errors.Is(err, mailbox.ErrNotFound) { // it has left
			state, err = mailbox.Owed, nil
		}
	}
	if err != nil || state == mailbox.Unread || state == mailbox.Withdrawn {
		return state, err
	}
	if state == mailbox.Done && m.RequiresAck {
		return "", nil
	}
	err = r.Send(ctx, &Outgoing{From: me, To: []wire.Address{from}, Message: &wire.Message{
		ID: notice, Type: wire.TypeNotice,
		InReplyTo: m.ID, Thread: m.ThreadID(), ReplyWanted: "no", Origin: origin,
		Body:    fmt.Sprintf("I withdrew my message %s, %s. Please do not act on it.", m.ID.Short(6), has),
		Payload: json.RawMessage(`{"withdrawn":"` + m.ID + `"}`),
	}})
	if err == nil && state == mailbox.Owed && from.Host == "" {
		_, err = b.Withdraw(ctx, m.ID, me.Address(), true)
	}
	return state, err
}

// ErrNotShared says that an inbox is its owner's alone, who reads it.
var ErrNotShared = errors.New("is not shared: nobody takes from it")

// MayTake reports why a member may not take from an inbox under a lease: it has to be a shared one of the same team.
func MayTake(box *mailbox.Box, by wire.Address) error {
	shared, err := box.Shared()
	if err == nil && (!shared || by.Team != box.Address().Team) {
		err = fmt.Errorf("the inbox of %s %w", box.Agent(), ErrNotShared)
	}
	return err
}

// Taken is the mailbox, box or a recipient's, from which a member took a message that is unread there; nil: none. What
// somebody else took gives a *mailbox.LeasedError, or mailbox.ErrNotHeld once that lease has run out, with the mailbox.
func (r *Root) Taken(box *mailbox.Box, m *wire.Message, by wire.Address) (from *mailbox.Box, err error) {
	var others error
	for _, a := range append([]wire.Address{box.Address()}, m.To...) {
		var lease mailbox.Lease
		isTaken := false
		b, err := r.Mailbox(a)
		if err == nil {
			lease, isTaken, err = b.LastLease(m.ID)
		}
		switch {
		case errors.Is(err, mailbox.ErrNoAgent) || errors.Is(err, ErrNoTeam):
		case err != nil:
			return nil, err
		case isTaken && lease.By == by:
			return b, nil
		case isTaken && lease.Until.After(time.Now()):
			from, others = b, &mailbox.LeasedError{ID: m.ID, Lease: lease}
		case isTaken:
			from, others = b, fmt.Errorf("message %s %w", m.ID.Short(6), mailbox.ErrNotHeld)
		}
	}
	return from, others
}

// LeaseFlags is what is shown of a message's lease.
func LeaseFlags(it *mailbox.Item) letter.Flags {
	f := letter.Flags{TimesTaken: it.Times}
	if it.Lease != nil {
		f.TakenBy, f.TakenUntil = it.Lease.By, it.Lease.Until
	}
	return f
}
