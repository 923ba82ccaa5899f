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

// Outgoing is a message that a member sends. It needs From, To and Message. Send or Ask sends it; a caller that has to
// look at the recipients before calls Prepare, and then one of those or Deliver.
type Outgoing struct {
	From    *mailbox.Box
	To      []wire.Address
	All     bool                         // To is everybody in the team, and anybody else who was named
	Message *wire.Message                // its content, with or without an id; Prepare sets its other fields
	Parent  *wire.Message                // the message that it answers, or nil
	Person  bool                         // a person sends it from outside an agent's environment: that ends a chain of hops
	Derived func(old *wire.Message) bool // as in mailbox.Post, if the message has a derived id

	// Once is an idempotency key of the sender's: under the same name, recipients and parent it is always the same
	// message, with the same id. All counts as one recipient, whoever is in the team.
	Once string

	Post   *mailbox.Post // set by Prepare: for the known recipients
	Failed []Failed      // set by Prepare: the unknown recipients

	Pushed map[wire.Address]Pushed // set by Deliver: what was given to whose programs
}

// Failed is a recipient that a message cannot reach.
type Failed struct {
	To  wire.Address
	Err error
}

// ErrTooManyHops refuses a reply in a chain of MaxHops replies within an hour.
var ErrTooManyHops = errors.New("in a chain of replies within an hour")

// Prepare completes a message and finds its recipients' mailboxes. It adds unknown recipients to Failed, without an
// error.
func (r *Root) Prepare(o *Outgoing) error {
	m := o.Message
	o.Post = &mailbox.Post{Message: m, Given: m.ID != "", Derived: o.Derived, Sender: o.From}
	m.ID = cmp.Or(m.ID, wire.NewID())
	if err := CheckID(m.ID); err != nil {
		return err
	}
	m.From, m.To = o.From.Address(), nil
	m.SentAt = cmp.Or(m.SentAt, time.Now().UTC())
	m.Origin = orCommand(m.Origin)
	if p := o.Parent; p != nil {
		m.InReplyTo, m.Thread = p.ID, cmp.Or(m.Thread, p.ThreadID())
		if !o.Person {
			m.Hop = p.NextHop()
		}
		if m.Hop >= wire.MaxHops && r.isHot(o) {
			return fmt.Errorf("this would be reply %d %w", m.Hop, ErrTooManyHops)
		}
	}
	for _, a := range unique(o.To) {
		b, err := r.Mailbox(a)
		if err == nil && a.Host != "" {
			t, _ := r.Team(a.Team)
			if _, unknown := t.Remote(a.Agent, a.Host); errors.Is(unknown, mailbox.ErrNoAgent) {
				err = unknown // but unreadable rows do not prevent sending
			} else if a.Team != m.From.Team {
				err = fmt.Errorf("%s: only its own team can send to a member on another host", a)
			}
		}
		if err != nil {
			o.Failed = append(o.Failed, Failed{a, err})
			continue
		}
		m.To = append(m.To, a)
		o.Post.To = append(o.Post.To, b)
	}
	if err := mailbox.Check(m); err != nil || o.Once == "" {
		return err
	}
	return o.setIDByKey()
}

// orCommand returns the origin of what is sent: without one it would look like a file of another program.
func orCommand(o *wire.Origin) *wire.Origin { return cmp.Or(o, &wire.Origin{Via: "cli"}) }

// isHot reports whether MaxHops-1 answers within an hour led to the parent, as far as the messages are here: a hop alone
// is what its sender says. Where the sender's own mail lacks a link, as in a ring of three, the answers in the thread
// count that the team's members have.
func (r *Root) isHot(o *Outgoing) bool {
	isRecent := func(m *wire.Message) bool { return m.InReplyTo != "" && time.Since(m.SentAt) < time.Hour }
	n := 0
	for at := o.Parent; at != nil && n < wire.MaxHops-1; n++ {
		if !isRecent(at) {
			return false
		}
		at = OwnMessage(o.From, at.InReplyTo)
	}
	if n == wire.MaxHops-1 {
		return true
	}
	t, err := r.Team(o.From.Address().Team)
	if err != nil {
		return false
	}
	thread, _ := t.Thread(context.Background(), o.Parent.ThreadID())
	thread = slices.DeleteFunc(thread, func(it *mailbox.Item) bool { return !isRecent(it.Message) })
	return len(thread) >= wire.MaxHops-1
}

// PrepareAll is Prepare, unless that was called before, with an error for the first unknown recipient.
func (r *Root) PrepareAll(o *Outgoing) error {
	if o.Post == nil {
		if err := r.Prepare(o); err != nil {
			return err
		}
	}
	if len(o.Failed) > 0 {
		return o.Failed[0].Err
	}
	return nil
}

// setIDByKey gives the message the id of its idempotency key.
func (o *Outgoing) setIDByKey() error {
	key := &mailbox.IdempotencyKey{Name: o.Once}
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
		return fmt.Errorf("record the key %q: %w", o.Once, err)
	}
	o.Message.ID, o.Post.Given = key.ID, true
	return nil
}

// Deliver delivers the message to each known recipient: see Post.Outcomes and Failed. If that reaches the sender of the
// parent, or anybody when the parent is one's own, it calls MarkAnswered and returns its error. Without a Prepare before,
// it calls that.
func (r *Root) Deliver(ctx context.Context, o *Outgoing) error {
	if o.Post == nil {
		if err := r.Prepare(o); err != nil {
			return err
		}
	}
	mailbox.Deliver(ctx, o.Post)
	o.Pushed = r.pushAll(ctx, o.Post)
	for _, out := range o.Post.Outcomes {
		if o.Parent == nil || out.Err != nil {
			continue
		}
		if from := o.Parent.From; from == out.Box.Address() || from == o.From.Address() {
			if r.doubt(o.Message) != "" { // what the member itself has not answered waits for it
				return nil
			}
			return r.MarkAnswered(ctx, o.From, o.Parent)
		}
	}
	return nil
}

// DescribeUnmarked describes an error of Deliver: the message was sent, but its parent is not marked as answered.
func DescribeUnmarked(err error) string {
	if _, isLeased := errors.AsType[*mailbox.LeasedError](err); isLeased || errors.Is(err, mailbox.ErrNotHeld) {
		return fmt.Sprintf("sent, but it does not count as an ack: %v", err)
	}
	return fmt.Sprintf("sent, but the message you answered is not marked: %v", err)
}

// Send prepares and delivers a message, and marks the parent as Deliver does. It sends nothing if a recipient is
// unknown, and returns the errors of all recipients that the message did not reach, and why the parent is not marked.
func (r *Root) Send(ctx context.Context, o *Outgoing) error {
	if err := r.PrepareAll(o); err != nil {
		return err
	}
	if len(o.Post.To) == 0 {
		return errors.New("send a message: it has no recipient")
	}
	unmarked := r.Deliver(ctx, o)
	var errs []error
	for _, out := range o.Post.Outcomes {
		errs = append(errs, out.Err)
	}
	return errors.Join(append(errs, unmarked)...)
}

func (t *Team) sendTo(ctx context.Context, from *mailbox.Box, to wire.Name, m *wire.Message) error {
	return t.root.Send(ctx, &Outgoing{From: from, To: []wire.Address{{Agent: to, Team: t.Name}}, Message: m})
}

func unique(in []wire.Address) (out []wire.Address) {
	for _, a := range in {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// CheckID checks an id that atm did not make: version 7 and at most a day ahead of the clock.
func CheckID(id wire.ID) error {
	if !wire.IsID(string(id)) {
		return fmt.Errorf("%q is not a UUIDv7", id)
	}
	if id.Time().After(time.Now().Add(24 * time.Hour)) {
		return fmt.Errorf("id %s is more than a day ahead of the clock", id)
	}
	return nil
}

// ReplyTo returns the recipients of an answer to parent: its sender, or with all everybody in it. An answer to one's
// own message goes to its recipients, except that one who has taken it from a shared inbox answers its sender.
func (r *Root) ReplyTo(ctx context.Context, parent *wire.Message, box *mailbox.Box, all bool) []wire.Address {
	to, me := []wire.Address{parent.From}, box.Address()
	hasTaken := func() bool { // now, or before an earlier answer finished it
		from, err := r.FindLease(box, parent, me)
		isMine := func(it *mailbox.Item) bool { return it.From == me }
		return from != nil && err == nil || slices.ContainsFunc(r.Replies(ctx, box, parent, wire.Address{}).Counted, isMine)
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

// MarkAnswered marks a message that me has answered as read, or as acknowledged if an ack is owed, and ends its lease.
// *mailbox.LeasedError or mailbox.ErrNotHeld if somebody else has taken the message: then the answer is no ack.
func (r *Root) MarkAnswered(ctx context.Context, me *mailbox.Box, parent *wire.Message) error {
	taken, takenErr := r.FindLease(me, parent, me.Address())
	if taken != nil && takenErr == nil {
		return taken.MarkAcked(ctx, parent.ID, me.Address())
	}
	it, err := me.Get(parent.ID)
	switch {
	case errors.Is(err, mailbox.ErrNotFound): // it is in somebody else's mailbox
		return takenErr
	case err != nil:
		return err
	case parent.RequiresAck && (it.State == mailbox.Unread || it.State == mailbox.Owed):
		return me.MarkAcked(ctx, parent.ID, me.Address())
	case it.State == mailbox.Unread:
		return me.MarkRead(ctx, parent.ID)
	}
	return nil
}
