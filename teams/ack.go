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

// Acked is the result of Ack.
type Acked struct {
	Post     *mailbox.Post // nil if no ack was sent
	WasAcked bool          // it was acknowledged before, by an ack or an answer
	Notes    []string      // messages to the caller's user
}

// ackLease is how long a message is leased at least while it is being acknowledged.
const ackLease = 30 * time.Second

// Ack acknowledges a message in box for its owner or the member that has leased it (else *mailbox.LeasedError or
// mailbox.ErrNotHeld). It delivers the ack to the message's sender durably, and only then marks the message as
// acknowledged and ends the lease. It is idempotent, since the ack's id is derived. If the sender withdraws the message
// meanwhile (mailbox.ErrWithdrawn), Ack withdraws the ack unless it is read.
func (r *Root) Ack(ctx context.Context, box *mailbox.Box, by wire.Address, m *wire.Message, text string, origin *wire.Origin) (a Acked, err error) {
	it, err := box.Get(m.ID)
	if err == nil && (it.Lease != nil || by != box.Address() && it.State != mailbox.Done) {
		_, err = box.RenewLease(ctx, m.ID, by, ackLease) // so that nobody else takes it meanwhile
	}
	if err != nil {
		return a, err
	}
	acker, _ := r.Mailbox(by) // nil: retired
	sender, err := r.Mailbox(m.From)
	switch {
	case errors.Is(err, mailbox.ErrNoAgent) || errors.Is(err, ErrNoTeam):
		a.WasAcked = it.State == mailbox.Done
		a.Notes = append(a.Notes, fmt.Sprintf("%s has no mailbox here, so no ack was sent", m.From))
		err = box.MarkAckedUnsent(ctx, m.ID, by)
	case err != nil:
		return a, err
	default:
		var isSent bool
		isSent, err = a.deliver(ctx, sender, acker, it, &wire.Message{
			ID: wire.AckID(m.ID, box.Address()), Type: wire.TypeAck, From: by, To: []wire.Address{m.From}, InReplyTo: m.ID,
			Thread: m.ThreadID(), Body: text, ReplyWanted: "no", SentAt: time.Now().UTC(), Hop: m.NextHop(), Origin: origin,
		})
		if err != nil || !isSent {
			return a, err
		}
		if err = box.MarkAcked(ctx, m.ID, by); errors.Is(err, mailbox.ErrWithdrawn) {
			sender.Withdraw(ctx, a.Post.Message.ID, by) // leaves one that was read
		}
	}
	if unlogged, ok := errors.AsType[*mailbox.UnloggedError](err); ok { // the message is marked, only the event is missing
		a.Notes, err = append(a.Notes, unlogged.Error()), nil
	}
	return a, err
}

// deliver delivers an ack, unless an answer has already acknowledged the message.
func (a *Acked) deliver(ctx context.Context, sender, acker *mailbox.Box, it *mailbox.Item, ack *wire.Message) (isSent bool, err error) {
	before, err := sender.Get(ack.ID)
	if it.RequiresAck && it.State == mailbox.Done && errors.Is(err, mailbox.ErrNotFound) {
		a.WasAcked = true
		if ack.Body != "" {
			a.Notes = append(a.Notes, fmt.Sprintf("already answered; your text was not sent: atm reply %s \"…\"", it.ID.Short(6)))
		}
		return false, nil
	}
	a.Post = &mailbox.Post{Message: ack, To: []*mailbox.Box{sender}, Given: true, Sender: acker}
	mailbox.Deliver(ctx, a.Post)
	out := a.Post.Outcomes[0]
	a.WasAcked = out.AlreadyStored
	if out.AlreadyStored && before != nil && ack.Body != "" && before.Body != ack.Body {
		const note = "already acknowledged with another text; yours was not sent: atm reply %s \"…\""
		a.Notes = append(a.Notes, fmt.Sprintf(note, it.ID.Short(6)))
	}
	return true, out.Err
}

// AckOf returns a recipient's ack of a message from its sender's mailbox. ErrNotFound if it was withdrawn, or if
// another host forged it: its id alone does not prove who sent it.
func AckOf(sender *mailbox.Box, id wire.ID, a wire.Address) (*mailbox.Item, error) {
	it, err := sender.Get(wire.AckID(id, a))
	if err == nil && (it.From.Host != a.Host || it.State == mailbox.Withdrawn) {
		err = mailbox.ErrNotFound
	}
	return it, err
}

// AckedBy returns the last ack or answer to a message of mine, and the recipients that have not acknowledged it yet.
func (r *Root) AckedBy(ctx context.Context, m *wire.Message, me *mailbox.Box) (last *mailbox.Item, missing []wire.Address) {
	for _, a := range m.To {
		if it, err := AckOf(me, m.ID, a); err == nil {
			last = it
			continue
		}
		if b, err := r.Mailbox(a); err == nil && m.RequiresAck {
			if it, err := b.Get(m.ID); err == nil && it.State == mailbox.Done {
				continue // only an ack or an answer moves such a message to done
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

// Withdraw withdraws a message of mine from a recipient, and returns the state that it had there. An unread message is
// moved out of the inbox. If the recipient has read it (Owed or Done), it gets a notice, and then owes no ack any more;
// a retry after an interruption repeats both. An acknowledged message stays, and the state is "". A leased one is a
// *mailbox.LeasedError.
func (r *Root) Withdraw(ctx context.Context, me *mailbox.Box, m *wire.Message, from wire.Address, origin *wire.Origin) (mailbox.State, error) {
	b, err := r.Mailbox(from)
	if err != nil {
		return "", err
	}
	wasAcked := false
	isAcked := func() bool { _, err := AckOf(me, m.ID, from); wasAcked = err == nil; return wasAcked }
	if isAcked() {
		return "", nil
	}
	state, err := b.Withdraw(ctx, m.ID, me.Address())
	where := "which you have read"
	if from.Host != "" {
		where = "which was on its way to you"
		if errors.Is(err, mailbox.ErrNotFound) { // the bridge has sent it
			state, err = mailbox.Owed, nil
		}
	}
	if err != nil || state == mailbox.Unread || state == mailbox.Withdrawn {
		return state, err
	}
	if state == mailbox.Done && m.RequiresAck {
		return "", nil
	}
	notice := wire.Derive("withdrawn", m.ID, from) // one of its own for each recipient
	err = r.Send(ctx, &Outgoing{From: me, To: []wire.Address{from}, Message: &wire.Message{
		ID: notice, Type: wire.TypeNotice,
		InReplyTo: m.ID, Thread: m.ThreadID(), ReplyWanted: "no", Origin: origin,
		Subject: "withdrawn: " + letter.Clip(m.Title(), 200),
		Body:    fmt.Sprintf("I withdrew my message %s, %s. Please do not act on it.", m.ID.Short(6), where),
		Payload: json.RawMessage(`{"withdrawn":"` + m.ID + `"}`),
	}})
	if err != nil || from.Host != "" {
		return state, err
	}
	now, err := b.WithdrawUnacked(ctx, m.ID, me.Address(), isAcked)
	if wasAcked || now == mailbox.Done && m.RequiresAck { // meanwhile
		b.Withdraw(ctx, notice, me.Address()) // leaves one that was read
		return "", err
	}
	return state, err
}

// ErrNotShared says that only the owner may read an inbox.
var ErrNotShared = errors.New("is not shared: only its owner may read it")

// CheckMayTake returns an error unless the inbox is a shared one of the member's own team.
func CheckMayTake(box *mailbox.Box, by wire.Address) error {
	shared, err := box.Shared()
	if err == nil && (!shared || by.Team != box.Address().Team) {
		err = fmt.Errorf("the inbox of %s %w", box.Agent(), ErrNotShared)
	}
	return err
}

// FindLease returns the mailbox, box or a recipient's, in which a member has taken an unread message under a lease; nil
// if there is none. If somebody else has taken it, the error is a *mailbox.LeasedError or, after that lease has
// expired, mailbox.ErrNotHeld.
func (r *Root) FindLease(box *mailbox.Box, m *wire.Message, by wire.Address) (from *mailbox.Box, err error) {
	for _, a := range append([]wire.Address{box.Address()}, m.To...) {
		var lease mailbox.Lease
		isTaken := false
		b, bad := r.Mailbox(a)
		if bad == nil {
			lease, isTaken, bad = b.LastLease(m.ID)
		}
		switch {
		case errors.Is(bad, mailbox.ErrNoAgent) || errors.Is(bad, ErrNoTeam):
		case bad != nil:
			return nil, bad
		case lease.By == by:
			return b, nil
		case lease.Until.After(time.Now()):
			from, err = b, &mailbox.LeasedError{ID: m.ID, Lease: lease}
		case isTaken:
			from, err = b, fmt.Errorf("message %s %w", m.ID.Short(6), mailbox.ErrNotHeld)
		}
	}
	return from, err
}

// LeaseFlags returns what is shown of a message's lease.
func LeaseFlags(it *mailbox.Item) letter.Flags {
	f := letter.Flags{TimesTaken: it.TimesHandedOut}
	if it.Lease != nil {
		f.TakenBy, f.TakenUntil = it.Lease.By, it.Lease.Until
	}
	return f
}
