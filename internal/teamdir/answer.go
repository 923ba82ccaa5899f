package teamdir

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Who may answer a message: CheckAnswer decides it, for a reply and for an ack, and everybody asks it.

// IsReply reports whether m is neither an ack nor a notice, and so may answer another message.
func IsReply(m *wire.Message) bool { return m.Type != wire.TypeAck && m.Type != wire.TypeNotice }

// ErrNotCounted says that an ack does not count, for which reason it is not sent.
var ErrNotCounted = errors.New("does not count")

// CheckAnswer returns why a reply to m or an ack of it does not count; nil: it does. It must be from a recipient, or from
// whoever has taken m from a shared inbox and so speaks for that, and its origin must not speak against its sender: see
// doubt.
func (r *Root) CheckAnswer(m, answer *wire.Message) error {
	if !slices.ContainsFunc(m.To, func(a wire.Address) bool { return r.speaksFor(a, answer.From, m) }) {
		return fmt.Errorf("%s was not asked", who(m, answer.From))
	}
	if why := r.doubt(answer); why != "" {
		return errors.New(why)
	}
	return nil
}

// who renders an address for the sender of a message.
func who(m *wire.Message, a wire.Address) string { return (&letter.Renderer{Team: m.From.Team}).Who(a) }

func (r *Root) speaksFor(recipient, sender wire.Address, m *wire.Message) bool {
	if sender == recipient {
		return true
	}
	t, err := r.Team(recipient.Team)
	if err != nil || sender.Team != recipient.Team || sender.Host != recipient.Host {
		return false
	}
	if recipient.Host != "" { // which member has taken it is known only there
		remote, err := t.Remote(recipient.Agent, recipient.Host)
		return err == nil && remote.Shared
	}
	return t.Box(recipient.Agent).HasTaken(m.ID, sender)
}

// doubt returns why a message may not be from its sender; "": nothing speaks against it. A member may drop a file, but
// no other member's process writes in its name. A person writes from outside of agents' programs only: else an agent
// could answer what a person was asked.
func (r *Root) doubt(m *wire.Message) string {
	isAgents, by := m.FromAgent()
	switch {
	case by != wire.Address{}:
		return "sent by a process of " + who(m, by)
	case m.Origin != nil && m.Origin.Via == "cli" && !isAgents, !r.IsPerson(m.From):
		return ""
	case m.IsDropped():
		return "dropped as a file"
	case isAgents:
		return "sent from an agent's environment"
	}
	return "not sent with a command of atm" // but by an MCP client, or put there by another program
}

// IsPerson reports whether an address may be a person's, as far as team.toml or another host says. The member called me
// is one unless team.toml says otherwise or atm has run it: that is what people call themselves here.
func (r *Root) IsPerson(a wire.Address) bool {
	t, err := r.Team(a.Team)
	if err != nil {
		return false
	}
	if a.Host != "" {
		m, err := t.Remote(a.Agent, a.Host)
		return err == nil && m.Kind == "person"
	}
	c, _ := t.Config() // doctor reports its mistakes
	m, isDescribed := c.Members[a.Agent]
	return m.Person || !isDescribed && a.Agent == "me" && t.runInfo(a.Agent).Run == ""
}

// Replies are the replies to a message, oldest first.
type Replies struct {
	Counted []*maildir.Item
	Others  []NoAnswer
}

// NoAnswer is a reply that does not count as an answer, and why.
type NoAnswer struct {
	*maildir.Item
	Reason error
}

// Replies finds the replies to a message of box's owner. With a recipient only those that speak for it are counted.
func (r *Root) Replies(ctx context.Context, box *maildir.Box, m *wire.Message, recipient wire.Address) (out Replies) {
	box.Walk(ctx, mentioning(m.ID, box), func(it *maildir.Item) bool {
		out.add(r, m, it, recipient)
		return true
	})
	slices.SortFunc(out.Counted, byID)
	return out
}

func (rs *Replies) add(r *Root, m *wire.Message, it *maildir.Item, recipient wire.Address) {
	if it.InReplyTo != m.ID || !IsReply(it.Message) {
		return
	}
	if err := r.CheckAnswer(m, it.Message); err != nil {
		rs.Others = append(rs.Others, NoAnswer{it, err})
	} else if recipient == (wire.Address{}) || r.speaksFor(recipient, it.From, m) {
		rs.Counted = append(rs.Counted, it)
	}
}

// repliesOf returns the counted replies of a recipient from the mailbox of the message's sender. If the sender is on
// another host, it returns those that members here have sent.
func (r *Root) repliesOf(ctx context.Context, m *wire.Message, recipient wire.Address) []*maildir.Item {
	sender, err := r.Mailbox(m.From)
	if m.From.Host == "" && err == nil {
		return r.Replies(ctx, sender, m, recipient).Counted
	}
	var out Replies
	if t, err := r.Team(m.From.Team); m.From.Host != "" && err == nil {
		all := mentioning(m.ID, t.everyBox()...)
		sent, _ := t.collect(ctx, maildir.Range{Sent: true, Since: all.Since, Keep: all.Keep}, nil, func(it *maildir.Item) bool {
			return it.InReplyTo == m.ID
		})
		slices.SortFunc(sent, byID)
		for _, it := range sent {
			out.add(r, m, it, recipient)
		}
	}
	return out.Counted
}

// HasFinished reports whether a member has acknowledged or answered a message for one of its recipients.
func (r *Root) HasFinished(ctx context.Context, m *wire.Message, recipient, by wire.Address) bool {
	isBy := func(it *maildir.Item) bool { return it.From == by }
	ack, err := r.AckOf(m, recipient)
	return err == nil && isBy(ack) || slices.ContainsFunc(r.repliesOf(ctx, m, recipient), isBy)
}

// ReplyTo returns the recipients of an answer to parent: its sender, or with all everybody in it. An answer to one's
// own message goes to its recipients, except that one who has taken it from a shared inbox answers its sender.
func (r *Root) ReplyTo(ctx context.Context, parent *wire.Message, box *maildir.Box, all bool) []wire.Address {
	to, me := []wire.Address{parent.From}, box.Address()
	hasTaken := func() bool { // now, or before an earlier answer finished it
		from, err := r.FindLease(box, parent, me)
		isMine := func(it *maildir.Item) bool { return it.From == me }
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

// markAnswered marks a message that me has answered as read, or as acknowledged if an ack is owed, and ends its lease.
// *maildir.LeasedError or maildir.ErrNotHeld if somebody else has taken the message: then the answer is no ack.
func (r *Root) markAnswered(ctx context.Context, me *maildir.Box, parent *wire.Message) error {
	taken, takenErr := r.FindLease(me, parent, me.Address())
	if taken != nil && takenErr == nil {
		return taken.MarkAcked(ctx, parent.ID, me.Address())
	}
	it, err := me.Get(parent.ID)
	switch {
	case errors.Is(err, maildir.ErrNotFound): // it is in somebody else's mailbox
		return takenErr
	case err != nil:
		return err
	case parent.RequiresAck && (it.State == maildir.Unread || it.State == maildir.Owed):
		return me.MarkAcked(ctx, parent.ID, me.Address())
	case it.State == maildir.Unread:
		return me.MarkRead(ctx, parent.ID)
	}
	return nil
}
