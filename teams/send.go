package teams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// Message is a message to send. It needs From, To unless it answers another one, and Content.
type Message struct {
	From    wire.Name
	To      []string      // bob; in another team of the root bob@web; a group or a role: @dev; every other member: all
	Answers *wire.Message // the message that it answers, which it marks as read, or as acknowledged; nil: none
	ToAll   bool          // an answer goes to the other recipients of that message as well
	Files   []File

	// Content is what it says: a Body or a Payload, or neither with Files, and whatever else a sender decides, such as
	// Subject, Priority, ReplyWanted, RequiresAck, DueAt and NotBefore. Send completes it in place: its ID, sender,
	// recipients, time and thread. So each message has one of its own: sent again, it is the same message.
	Content *wire.Message

	// Once is a key of the sender's: under the same key, recipients and Answers it is always the same message, which is
	// delivered once, however often it is sent. If it says something else, the error is ErrOtherText; DueAt and ReplyWanted
	// may differ. At most 200 bytes. "": each is another message.
	Once string
}

// File is a file that goes with a message. Its content is read once for each team that gets the message.
type File struct {
	Name    string
	Content io.ReadSeeker
}

// Sent says what became of a message.
type Sent post.Result[*post.Sent] // so atm's programs convert it

// Receipts says what became of the message at each of its recipients; nil: nothing was sent.
func (s *Sent) Receipts() (all []wire.Receipt) {
	for _, to := range (*post.Result[*post.Sent])(s).Is().To {
		all = append(all, to.Receipt)
	}
	return all
}

// Err is the error for all whom the message has not reached; nil: it has reached them all.
func (s *Sent) Err() error { return (*post.Result[*post.Sent])(s).Is().Err }

// Send sends a message, also to several members. One that it does not reach does not keep it from the others; the error
// is for all of those, and Receipts says which.
func (t *Team) Send(ctx context.Context, m *Message) (*Sent, error) {
	sent := t.SendAll(ctx, m)[0]
	return sent, sent.Err()
}

// SendAll is Send for several messages, which reach each recipient in their order. They are written side by side, and so
// cost less than one after the other. None may answer or replace an earlier one of them.
func (t *Team) SendAll(ctx context.Context, all ...*Message) []*Sent {
	sent := make([]*Sent, len(all))
	var ready []*post.Outgoing
	var at []int
	for i, m := range all {
		out, err := t.outgoing(ctx, m)
		if err != nil {
			sent[i] = (*Sent)(post.ResultOf(&post.Sent{Err: err}))
			continue
		}
		ready, at = append(ready, out), append(at, i)
	}
	for i, s := range post.SendAll(ctx, t.in().Root(), ready) {
		sent[at[i]] = (*Sent)(post.ResultOf(s))
	}
	return sent
}

func (t *Team) outgoing(ctx context.Context, m *Message) (*post.Outgoing, error) {
	switch {
	case m.From == "":
		return nil, errors.New("send a message: it needs From")
	case m.Content == nil || m.Content.Body == "" && m.Content.Payload == nil && len(m.Files) == 0:
		return nil, errors.New("send a message: it is empty")
	}
	from, err := t.in().Member(m.From)
	if err != nil {
		return nil, err
	}
	front := t.front()
	m.Content.Hop = 0
	out := &post.Outgoing{From: from, Message: m.Content, Parent: m.Answers, Person: front.IsPerson(), Once: m.Once}
	if m.Answers != nil && len(m.To) == 0 {
		out.To = post.ReplyTo(ctx, t.in().Root(), m.Answers, from, m.ToAll)
	} else if out.To, out.Named, err = presence.Recipients(t.in(), from.Address(), m.To...); err != nil {
		return nil, err
	}
	out.Message.From, out.Message.Origin = from.Address(), front.Origin()
	if err := front.MaySend(out.Message, out.To); err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if f.Content == nil {
			return nil, fmt.Errorf("send a message: the file %q has no content", f.Name)
		}
		out.Files = append(out.Files, post.File(f))
	}
	return out, nil
}

// library is the front of a program that is not atm's.
type library struct{}

// Origin says where a message comes from: see the package's comment for what follows from it.
func (library) Origin() *wire.Origin { return &wire.Origin{Via: "library"} }

func (library) IsPerson() bool { return false }

// MaySend refuses what other calls send, or only atm.
func (library) MaySend(m *wire.Message, _ []wire.Address) error {
	if m.Type != "" && m.Type != wire.TypeMessage {
		return fmt.Errorf("send a message: it is of type %q, and only one of type message is sent so", m.Type)
	}
	if m.HasOurMeta() {
		return errors.New("send a message: meta.atm is not its sender's to set")
	}
	return nil
}

// Ack is what a member says of a message that it has got, or of a job that it has taken.
type Ack struct {
	ID      wire.ID // of the message
	Outcome string  // one of wire.Outcomes: done, blocked, declined; "": it has the message and will act on it
	Text    string  // for the sender
}

// Acked says what became of an Ack.
type Acked post.Result[post.Acked] // so atm's programs convert it

// WasAcked reports whether the sender had this ack before, or an answer that stands for it.
func (a *Acked) WasAcked() bool { return (*post.Result[post.Acked])(a).Is().WasAcked }

// Err says why the message is not acknowledged: see Team.Ack.
func (a *Acked) Err() error { return (*post.Result[post.Acked])(a).Is().Err }

// Ack acknowledges a message for a member. A job is done then, whatever the outcome; but one that is declined goes to whoever
// takes next, as long as team.toml has members that serve its inbox and have not declined it. It may be called again; the
// last outcome counts. Errors: mailbox.ErrNotFound for what the member has not got or taken, ErrNotCounted in the name of a
// person.
func (t *Team) Ack(ctx context.Context, member wire.Name, a Ack) error {
	return t.AckAll(ctx, member, a)[0].Err()
}

// AckAll is Ack for several messages, and costs less than one after the other.
func (t *Team) AckAll(ctx context.Context, member wire.Name, all ...Ack) []*Acked {
	me, unknown := t.in().Member(member)
	acked := make([]*Acked, len(all))
	var ready []post.ToAck
	var at []int
	for i, a := range all {
		one, err := post.ToAck{}, unknown
		if err == nil {
			one, err = t.toAck(ctx, me, a)
		}
		if err != nil {
			acked[i] = (*Acked)(post.ResultOf(post.Acked{Err: err}))
			continue
		}
		at, ready = append(at, i), append(ready, one)
	}
	for i, done := range post.AckAll(ctx, t.in().Root(), me, ready...) {
		acked[at[i]] = (*Acked)(post.ResultOf(done))
	}
	return acked
}

// toAck finds a message that a member has, or has finished, and makes its ack.
func (t *Team) toAck(ctx context.Context, me *maildir.Box, a Ack) (one post.ToAck, err error) {
	if a.Outcome != "" && !slices.Contains(wire.Outcomes, a.Outcome) {
		return one, fmt.Errorf("ack %s: the outcome %q is none of %s", a.ID.Short(6), a.Outcome, strings.Join(wire.Outcomes, ", "))
	}
	it, box, err := post.Find(t.in(), me, string(a.ID))
	if err != nil {
		return one, err
	}
	held, err := post.FindHeld(ctx, t.in().Root(), me, it, box, true)
	if err == nil && held.State == wire.Withdrawn {
		err = maildir.Withdrawn(a.ID)
	}
	if err != nil {
		return one, err
	}
	ack := &wire.Message{Type: wire.TypeAck, Body: a.Text, Origin: t.front().Origin()}
	if a.Outcome != "" {
		ack.SetOutcome(a.Outcome)
	}
	return post.ToAck{Box: held.Box, Message: held.Message, Ack: ack}, nil
}

// Withdraw takes a message of a member's back, from those of its recipients who have not read it: they never see it. Who has
// read it, or taken it as a job, gets a notice, and whoever has acknowledged it keeps it. The State of each Delivery is the
// one in which it was; "": it was acknowledged. It may be called again. ErrNotFound if it is not of the member.
func (t *Team) Withdraw(ctx context.Context, member wire.Name, id wire.ID) (all []Delivery, err error) {
	me, err := t.in().Member(member)
	if err != nil {
		return nil, err
	}
	it, _, err := post.Find(t.in(), me, string(id))
	if err == nil && it.From != me.Address() {
		err = fmt.Errorf("message %s is from %s: %w", id.Short(6), it.From, mailbox.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	for _, to := range it.To {
		state, err := post.Withdraw(ctx, t.in().Root(), me, it.Message, to, t.front().Origin())
		all = append(all, Delivery{To: to, State: state, Err: err})
	}
	return all, nil
}

// Take takes the next job from a shared inbox for a member, who has it until the lease is over: others take other jobs. An
// urgent one comes first. Ack ends it; without that it is given out again after the lease. Without a job it returns nil.
func (t *Team) Take(ctx context.Context, member, inbox wire.Name, lease time.Duration) (*wire.Message, error) {
	me, err := t.in().Member(member)
	if err != nil {
		return nil, err
	}
	box, err := t.in().Member(inbox)
	if err != nil {
		return nil, err
	}
	if isShared, err := claim.Shared(box); err != nil || !isShared {
		return nil, cmp.Or(err, fmt.Errorf("take from %s: its inbox is not shared", inbox))
	}
	it, err := post.GiveJob(ctx, t.in(), inbox, me.Address(), lease, func(*wire.Item, wire.Lease) (bool, error) { return true, nil })
	if err != nil || it == nil {
		return nil, err
	}
	return it.Message, nil
}

// Delivery says how far a message got at one of its recipients.
type Delivery struct {
	To     wire.Address
	State  wire.State      // "": not known
	Stages []history.Stage // those that it has reached, of Trace
	Err    error           // why its state is not known, or why it is not withdrawn
}

// Trace says how far a message that a member has sent or got is at each of its recipients, or returns
// mailbox.ErrNotFound.
func (t *Team) Trace(ctx context.Context, member wire.Name, id wire.ID) (all []Delivery, err error) {
	box, err := t.in().Member(member)
	if err != nil {
		return nil, err
	}
	m := search.OwnMessage(box, id)
	if m == nil {
		return nil, fmt.Errorf("trace %s: %w", id, mailbox.ErrNotFound)
	}
	answers := post.AnswersTo(ctx, t.in().Root(), m)
	for _, a := range m.To {
		found := answers.Trace(m, a)
		d := Delivery{To: a, State: found.State, Err: found.Err}
		for _, s := range found.Stages {
			if s.Evidence != "" {
				d.Stages = append(d.Stages, s)
			}
		}
		all = append(all, d)
	}
	return all, nil
}
