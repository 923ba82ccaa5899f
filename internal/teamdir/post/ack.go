package post

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/wire"
)

// Acked is the result of Ack.
type Acked struct {
	Message  *wire.Message // the ack; nil: its sender has no mailbox
	To       Recipient     // who got it; zero: none was sent
	WasAcked bool          // it was acknowledged before, by an ack or an answer

	IsPassedOn bool     // it was declined, and the next one who serves its inbox gets it
	Unsent     string   // why the ack's text was not sent, which a reply can say; "": it was
	Notes      []string // messages to the caller's user
	Err        error    // that of Ack
}

// ackLease is how long a message is leased at least while it is being acknowledged.
const ackLease = 30 * time.Second

// Ack acknowledges m, a message in box, for me: the mailbox's owner or the member that has leased the message (else
// *maildir.LeasedError or maildir.ErrNotHeld). ack has the text, the outcome and the origin. Ack delivers it to the sender
// durably, and only then marks m as acknowledged and ends the lease. It is idempotent, since the ack's id is derived: only
// another outcome than that of the last ack, or another text about it, is a new ack. If the sender withdraws m meanwhile
// (maildir.ErrWithdrawn), Ack withdraws the ack unless it is read.
func Ack(ctx context.Context, r *teamdir.Root, me, box *maildir.Box, m, ack *wire.Message) (Acked, error) {
	done := AckAll(ctx, r, me, ToAck{box, m, ack})[0]
	return done, done.Err
}

// ToAck is a message in a mailbox, and its ack: see Ack.
type ToAck struct {
	Box          *maildir.Box
	Message, Ack *wire.Message
}

// AckAll is Ack for several messages, whose acks share the disk's flushes.
func AckAll(ctx context.Context, r *teamdir.Root, me *maildir.Box, all ...ToAck) []Acked {
	done, posts := make([]Acked, len(all)), make([]*maildir.Post, len(all))
	finish := make([]func(Recipient) (Acked, error), len(all))
	var ready []*maildir.Post
	for i, one := range all {
		done[i], posts[i], finish[i], done[i].Err = prepareAck(ctx, r, me, one.Box, one.Message, one.Ack)
		if posts[i] != nil {
			ready = append(ready, posts[i])
		}
	}
	maildir.Deliver(ctx, ready...)
	pushed := push.All(ctx, r, ready)
	for i, to := range recipients(posts) {
		if posts[i] != nil {
			to[0].Push = pushed[to[0].Address]
			done[i], done[i].Err = finish[i](to[0])
		}
	}
	pushFreed(ctx, r, all)
	return done
}

// pushFreed gives programs the mail that needed messages which were acked as done.
func pushFreed(ctx context.Context, r *teamdir.Root, all []ToAck) {
	given, looked := map[string]bool{}, map[wire.Name]bool{}
	for _, one := range all {
		t, err := r.Team(one.Message.From.Team)
		if err == nil && one.Ack.Outcome() == "done" && !looked[t.Name] {
			looked[t.Name] = true
			push.Waited(ctx, t, given)
		}
	}
}

// prepareAck is Ack up to the ack's delivery, which post is for, and finish goes on behind it. Without a post all is done.
func prepareAck(ctx context.Context, r *teamdir.Root, me, box *maildir.Box, m, ack *wire.Message) (a Acked, post *maildir.Post, finish func(Recipient) (Acked, error), err error) {
	by := me.Address()
	it, err := box.Get(m.ID)
	if err == nil && (it.Lease != nil || by != box.Address() && it.State != wire.Done) {
		_, err = claim.RenewLease(ctx, box, m.ID, by, ackLease) // so that nobody else takes it meanwhile
	}
	if err != nil {
		return a, nil, nil, err
	}
	ack.Type, ack.From, ack.To = wire.TypeAck, by, []wire.Address{m.From}
	ack.InReplyTo, ack.Thread, ack.Hop = m.ID, m.ThreadID(), m.NextHop()
	ack.ReplyWanted, ack.SentAt, ack.Origin = "no", time.Now().UTC(), OrCommand(ack.Origin)
	outcome := ack.Outcome()
	if why := doubt(ack, persons(r)); why != "" {
		return a, nil, nil, fmt.Errorf("ack in the name of %s: %w: %s", who(m, by), ErrNotCounted, why)
	}
	sender, err := r.Mailbox(m.From)
	if errors.Is(err, maildir.ErrNoMailbox) || errors.Is(err, teamdir.ErrNoTeam) {
		a.WasAcked = it.State == wire.Done
		a.Notes = append(a.Notes, fmt.Sprintf("%s has no mailbox here, so no ack was sent", m.From))
		ack.ID = wire.NewID()
		err = a.noteUnlogged(box.MarkAckedAs(ctx, m.ID, by, ack, false))
		return a, nil, nil, err
	}
	if err != nil {
		return a, nil, nil, err
	}
	if isJob := by != box.Address() && it.State == wire.Unread; isJob && outcome == "declined" {
		if a.IsPassedOn, err = passOn(ctx, r, me, box, m, ack.Body); a.IsPassedOn || err != nil {
			return a, nil, nil, err
		}
	}
	isAck := isAckFor(r, box.Address(), m, persons(r))
	recipient := sender.AddressThere(box.Address())
	acks, err := acksBy(m, recipient, func(id wire.ID) (*wire.Item, error) {
		if sender.Host() == "" {
			return sender.GetDerived(id, isAck)
		}
		sent, err := me.Sent(id) // the bridge may have taken it from the outbox
		return &wire.Item{Message: sent}, err
	})
	if err != nil {
		return a, nil, nil, err
	}
	n, isRepeat := len(acks), false
	if n > 0 {
		last := acks[n-1]
		isRepeat = outcome == "" || last.Outcome() == outcome && (ack.Body == "" || ack.Body == last.Body)
		if isRepeat {
			n--
		}
		if isRepeat && ack.Body != "" && last.Body != ack.Body {
			a.Unsent = "already acknowledged with another text; yours was not sent"
		}
	}
	ack.ID = wire.AckID(m.ID, recipient, n)
	a.Message = ack
	isDone := it.State == wire.Done
	switch {
	case n == maxAcks:
		return a, nil, nil, fmt.Errorf("message %s was acknowledged %d times", m.ID.Short(6), n)
	case isRepeat && isDone && sender.Host() != "": // it is on its way, or there
		a.WasAcked = true
		return a, nil, nil, nil
	case len(acks) == 0 && outcome == "" && it.RequiresAck && isDone: // an answer was the ack
		a.WasAcked = true
		if ack.Body != "" {
			a.Unsent = "already answered; your text was not sent"
		}
		return a, nil, nil, nil
	}
	post = &maildir.Post{Message: ack, To: []*maildir.Box{sender}, Derived: isAck, Sender: me}
	return a, post, func(to Recipient) (Acked, error) {
		a.To = to
		if outcome != "" && to.WasDelivered && !isRepeat && sender.Host() == "" { // another ack came first
			return Ack(ctx, r, me, box, m, ack)
		}
		a.WasAcked = to.WasDelivered || isRepeat
		if to.Err != nil {
			return a, to.Err
		}
		err := box.MarkAckedAs(ctx, m.ID, by, ack, true)
		if errors.Is(err, maildir.ErrWithdrawn) {
			sender.Withdraw(ctx, ack.ID, by) // leaves one that was read
		}
		err = a.noteUnlogged(err)
		return a, err
	}, nil
}

// noteUnlogged makes a note of an error that only an event is missing: the message is marked.
func (a *Acked) noteUnlogged(err error) error {
	if unlogged, ok := errors.AsType[*maildir.UnloggedError](err); ok {
		a.Notes = append(a.Notes, unlogged.Error())
		return nil
	}
	return err
}

// isAckFor returns what an ack of m for one of its recipients looks like.
func isAckFor(r *teamdir.Root, recipient wire.Address, m *wire.Message, isPerson func(wire.Address) bool) func(*wire.Message) bool {
	return func(ack *wire.Message) bool {
		return ack.Acks(m.ID) && speaksFor(r, recipient, ack.From, m) && doubt(ack, isPerson) == ""
	}
}

// maxAcks is how many acks of a message one recipient may send.
const maxAcks = 100

// acksBy returns the acks of a message by one recipient, in order, as get finds them under their ids.
func acksBy(m *wire.Message, recipient wire.Address, get func(wire.ID) (*wire.Item, error)) (acks []*wire.Item, err error) {
	for n := range maxAcks {
		it, err := get(wire.AckID(m.ID, recipient, n))
		if errors.Is(err, maildir.ErrNotFound) {
			break
		} else if err != nil {
			return acks, err
		}
		acks = append(acks, it)
	}
	return acks, nil
}

// AcksOf returns the acks of a message for a recipient from its sender's mailbox, oldest first, but for withdrawn ones: each
// has another outcome than the one before. ErrNotFound if there is none.
func AcksOf(r *teamdir.Root, m *wire.Message, recipient wire.Address) ([]*wire.Item, error) {
	return acksOf(r, m, recipient, persons(r))
}

func acksOf(r *teamdir.Root, m *wire.Message, recipient wire.Address, isPerson func(wire.Address) bool) ([]*wire.Item, error) {
	sender, err := r.Mailbox(m.From)
	if err != nil {
		return nil, err
	}
	isAck := isAckFor(r, recipient, m, isPerson)
	acks, err := acksBy(m, sender.AddressThere(recipient), func(id wire.ID) (*wire.Item, error) { return sender.GetDerived(id, isAck) })
	acks = slices.DeleteFunc(acks, func(it *wire.Item) bool { return it.State == wire.Withdrawn })
	if len(acks) == 0 {
		return nil, cmp.Or(err, maildir.ErrNotFound)
	}
	return acks, nil
}

// AckOf returns the last ack of AcksOf, which counts.
func AckOf(r *teamdir.Root, m *wire.Message, recipient wire.Address) (*wire.Item, error) {
	acks, err := AcksOf(r, m, recipient)
	if err != nil {
		return nil, err
	}
	return acks[len(acks)-1], nil
}

// ErrDeclined says that a recipient will not do what a message asks, or cannot.
var ErrDeclined = errors.New("it will not be done")

// CheckDeclined returns ErrDeclined, with what was said to that, if a recipient's last ack of a message declines it, or says that
// it is blocked. nil is no ack.
func CheckDeclined(m *wire.Message, ack *wire.Item) error {
	if ack == nil || ack.Outcome() == "" || ack.Outcome() == "done" {
		return nil
	}
	return &declinedError{SaidOf(m, ack)}
}

type declinedError struct{ said string }

func (e *declinedError) Error() string        { return e.said }
func (e *declinedError) Is(target error) bool { return target == ErrDeclined }

// SaidOf says what an ack says of a message, in its sender's words: "bob declined 9f3a1c: no time", "bob acked 9f3a1c as done".
func SaidOf(m *wire.Message, ack *wire.Item) string {
	text := fmt.Sprintf("%s acked %s", who(m, ack.From), m.ID.Short(6))
	switch outcome := ack.Outcome(); outcome {
	case "":
	case "declined":
		text = fmt.Sprintf("%s declined %s", who(m, ack.From), m.ID.Short(6))
	default:
		text += " as " + outcome
	}
	if ack.Body != "" {
		text += ": " + letter.OneLine(ack.Body, 200)
	}
	return text
}

// Withdraw withdraws a message of mine from a recipient, and returns the state that it had there. An unread message is
// moved out of the inbox. If the recipient has read it (Owed or Done), it gets a notice, and then owes no ack any more;
// a retry after an interruption repeats both. An acknowledged message stays, and the state is "". A member
// that has taken it is told, and the state is Taken.
func Withdraw(ctx context.Context, r *teamdir.Root, me *maildir.Box, m *wire.Message, from wire.Address, origin *wire.Origin) (wire.State, error) {
	b, err := r.Mailbox(from)
	unknown, isUnknown := errors.AsType[*teamdir.UnknownHostError](err) // what waits for it here can be taken back, as after atm link --remove
	if err != nil && !isUnknown {
		return "", err
	}
	wasAcked := false
	isAcked := func() bool { _, err := AckOf(r, m, from); wasAcked = err == nil; return wasAcked }
	// A reply is the ack as well; of one on another host only that host's report may tell.
	isAckedThere := r.IsRemote(from) && m.RequiresAck && AnswersTo(ctx, r, m).At(m, from).State == wire.Done
	if isAcked() || isAckedThere {
		return "", nil
	}
	lease, _, _ := claim.LastLease(b, m.ID)
	state, err := b.Withdraw(ctx, m.ID, me.Address())
	if hadIt := lease.Until.After(time.Now()); hadIt && err == nil && state == wire.Unread {
		return Taken, tellTaker(ctx, r, me, m, lease.By, origin)
	}
	where, isOutbox := "which you have read", b.Host() != ""
	if isOutbox {
		where = "which was on its way to you"
		if errors.Is(err, maildir.ErrNotFound) { // the bridge has sent it
			state, err = wire.Owed, nil
		}
	}
	if err != nil || state == wire.Unread || state == wire.Withdrawn {
		return state, err
	}
	if state == wire.Done && m.RequiresAck {
		return "", nil
	}
	if isUnknown { // nobody can tell it
		return "", fmt.Errorf("%s has it: %w", from, unknown)
	}
	told := withdrawnNotice(m, from, where, origin)
	_, err = Send(ctx, r, &Outgoing{From: me, To: []wire.Address{from}, Message: told, Derived: IsNoticeFrom(me.Address())})
	if err != nil || isOutbox {
		return state, err
	}
	now, err := b.WithdrawRead(ctx, m.ID, me.Address(), isAcked)
	if wasAcked || now == wire.Done && m.RequiresAck { // meanwhile
		b.Withdraw(ctx, told.ID, me.Address()) // leaves one that was read
		return "", err
	}
	return state, err
}

// Taken is Withdraw's state of a job that somebody had taken.
const Taken wire.State = "taken"

// withdrawnNotice tells somebody that a message was withdrawn.
func withdrawnNotice(m *wire.Message, to wire.Address, where string, origin *wire.Origin) *wire.Message {
	return &wire.Message{
		ID:   wire.Derive("withdrawn", m.ID, to), // one of its own for each recipient
		Type: wire.TypeNotice, InReplyTo: m.ID, Thread: m.ThreadID(), ReplyWanted: "no", Origin: origin,
		Subject: "withdrawn: " + letter.OneLine(m.Title(), 200),
		Body:    fmt.Sprintf("I withdrew my message %s, %s. Please do not act on it.", m.ID.Short(6), where),
		Payload: json.RawMessage(`{"withdrawn":"` + m.ID + `"}`),
	}
}

// IsNoticeFrom returns what a notice under a derived id looks like.
func IsNoticeFrom(sender wire.Address) func(*wire.Message) bool {
	return func(m *wire.Message) bool {
		return m.Type == wire.TypeNotice && m.From == sender && !m.IsDropped()
	}
}

// LeaseFlags returns what is shown of a message's lease.
func LeaseFlags(it *wire.Item) letter.Flags {
	f := letter.Flags{TimesTaken: it.TimesHandedOut, IsAside: it.IsAside}
	if it.Lease != nil {
		f.TakenBy, f.TakenUntil = it.Lease.By, it.Lease.Until
	}
	return f
}
