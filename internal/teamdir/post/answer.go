package post

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/wire"
)

// Who may answer a message: CheckAnswer decides it, for a reply and for an ack, and everybody asks it.

// IsReply reports whether m is neither an ack nor a notice, and so may answer another message.
func IsReply(m *wire.Message) bool { return m.Type != wire.TypeAck && m.Type != wire.TypeNotice }

// ErrNotCounted says that an ack would not count, for which reason it is not sent.
var ErrNotCounted = errors.New("the ack would not count")

// CheckAnswer returns why a reply to m or an ack of it does not count; nil: it does. It must be from a recipient, or from
// whoever has taken m from a shared inbox and so speaks for that, and its origin must not speak against its sender: see
// doubt.
func CheckAnswer(r *teamdir.Root, m, answer *wire.Message) error {
	return checkAnswer(r, m, answer, persons(r))
}

func checkAnswer(r *teamdir.Root, m, answer *wire.Message, isPerson func(wire.Address) bool) error {
	if !slices.ContainsFunc(m.To, func(a wire.Address) bool { return speaksFor(r, a, answer.From, m) }) {
		return fmt.Errorf("%s was not asked", who(m, answer.From))
	}
	if why := doubt(answer, isPerson); why != "" {
		return errors.New(why)
	}
	return nil
}

// who renders an address for the sender of a message.
func who(m *wire.Message, a wire.Address) string { return (&letter.Renderer{Team: m.From.Team}).Who(a) }

func speaksFor(r *teamdir.Root, recipient, sender wire.Address, m *wire.Message) bool {
	if sender == recipient {
		return true
	}
	if sender.Team != recipient.Team || sender.Host != recipient.Host {
		return false
	}
	t, err := r.Team(recipient.Team)
	switch {
	case err != nil:
		return false
	case r.IsRemote(recipient): // which member has taken it is known only there
		m, err := presence.One(context.Background(), t, t.NameOf(recipient))
		return err == nil && m.Shared
	case recipient.Host != "":
		box, err := r.Mailbox(recipient)
		return err == nil && claim.HasTaken(box, m.ID, sender)
	}
	return claim.HasTaken(t.Box(recipient.Agent), m.ID, sender)
}

// doubt returns why a message may not be from its sender; "": nothing speaks against it. A member may drop a file, but
// no other member's process writes in its name. A person writes from outside of agents' programs only: else an agent
// could answer what a person was asked.
func doubt(m *wire.Message, isPerson func(wire.Address) bool) string {
	isAgents, by := m.FromAgent()
	switch {
	case by != wire.Address{}:
		return "sent by a process of " + who(m, by)
	case m.Origin != nil && m.Origin.Via == "cli" && !isAgents, !isPerson(m.From):
		return ""
	case m.IsDropped():
		return "dropped as a file"
	case isAgents:
		return "sent from an agent's environment"
	}
	return "not sent with a command of atm" // but by an MCP client, or put there by another program
}

func persons(r *teamdir.Root) func(wire.Address) bool {
	return func(a wire.Address) bool { return IsPerson(r, a) }
}

// IsPerson reports whether an address may be a person's, as far as the team.toml of its root, or another host, says.
func IsPerson(r *teamdir.Root, a wire.Address) bool {
	t, err := r.TeamOf(a)
	if err != nil {
		return false
	}
	if r.IsRemote(a) {
		m, err := presence.One(context.Background(), t, t.NameOf(a))
		return err == nil && m.Kind == "person"
	}
	c, _ := t.Config() // doctor reports its mistakes
	return c.IsPerson(a.Agent)
}

// Answers finds the answers to some messages and the acks of them. It looks through the mailbox of each of their senders
// once, when the first is asked for, and asks once for each member whether it is a person: that reads team.toml.
type Answers struct {
	root     *teamdir.Root
	isOne    bool // the acks of one message are found by their ids
	found    func() map[asked]answers
	isPerson func(wire.Address) bool
	past     past
}

// asked is a message that may be answered.
type asked struct {
	from wire.Address
	id   wire.ID
}

// answers are what was found for a message, oldest first.
type answers struct{ replies, acks []*wire.Item }

// AnswersTo finds the answers to messages.
func AnswersTo(ctx context.Context, r *teamdir.Root, to ...*wire.Message) *Answers {
	known := map[wire.Address]bool{}
	isPerson := func(a wire.Address) bool {
		is, isKnown := known[a]
		if !isKnown {
			is = IsPerson(r, a)
			known[a] = is
		}
		return is
	}
	return &Answers{r, len(to) == 1, sync.OnceValue(func() map[asked]answers { return answersTo(ctx, r, to) }), isPerson, past{}}
}

// Again looks for the answers to one of the messages anew, and reads of what its recipients did only what is new.
func (a *Answers) Again(ctx context.Context, m *wire.Message) *Answers {
	again := AnswersTo(ctx, a.root, m)
	again.past = a.past
	return again
}

// answersTo finds the replies to messages and the acks of them in the mailboxes of their senders. To a message from another
// host or root it finds those that members here have sent.
func answersTo(ctx context.Context, r *teamdir.Root, to []*wire.Message) map[asked]answers {
	found, ids := map[asked]answers{}, map[wire.Address][]wire.ID{}
	for _, m := range to {
		found[asked{m.From, m.ID}], ids[m.From] = answers{}, append(ids[m.From], m.ID)
	}
	for from, ids := range ids {
		var all []*wire.Item
		isAnswer := func(it *wire.Item) bool {
			_, isAsked := found[asked{from, it.InReplyTo}]
			return isAsked && it.Type != wire.TypeNotice
		}
		if t, err := r.Team(from.Team); err == nil && from.Host != "" {
			rg := search.Answering(ids, search.EveryBox(t)...)
			rg.Unread, rg.Owed, rg.Done, rg.Archive, rg.Sent = false, false, false, false, true
			all, _ = search.Collect(ctx, t, rg, nil, isAnswer)
		} else if box, err := r.Mailbox(from); err == nil {
			inbox.Walk(ctx, box, search.Answering(ids, box), func(it *wire.Item) bool {
				if isAnswer(it) {
					all = append(all, it)
				}
				return true
			})
		}
		slices.SortFunc(all, search.ByID)
		for _, it := range all {
			to := asked{from, it.InReplyTo}
			if some := found[to]; IsReply(it.Message) {
				found[to] = answers{append(some.replies, it), some.acks}
			} else {
				found[to] = answers{some.replies, append(some.acks, it)}
			}
		}
	}
	return found
}

// Acks is AcksOf for one of the messages.
func (a *Answers) Acks(m *wire.Message, recipient wire.Address) ([]*wire.Item, error) {
	if a.isOne && m.From.Host == "" {
		return acksOf(a.root, m, recipient, a.isPerson)
	}
	isAck := isAckFor(a.root, recipient, m, a.isPerson)
	acks := slices.Clone(a.found()[asked{m.From, m.ID}].acks)
	acks = slices.DeleteFunc(acks, func(it *wire.Item) bool { return !isAck(it.Message) })
	if len(acks) == 0 {
		return nil, maildir.ErrNotFound
	}
	for n, it := range acks {
		if m.From.Host == "" && it.ID != wire.AckID(m.ID, recipient, n) { // one was withdrawn, or another message has its id
			return acksOf(a.root, m, recipient, a.isPerson)
		}
	}
	return acks, nil
}

// Ack is AckOf for one of the messages.
func (a *Answers) Ack(m *wire.Message, recipient wire.Address) (*wire.Item, error) {
	acks, err := a.Acks(m, recipient)
	if err != nil {
		return nil, err
	}
	return acks[len(acks)-1], nil
}

// Replies are the replies to a message, oldest first.
type Replies struct {
	Counted []*wire.Item
	Others  []NoAnswer
}

// NoAnswer is a reply that does not count as an answer, and why.
type NoAnswer struct {
	*wire.Item
	Reason error
}

// Replies returns the replies to one of the messages. With a recipient only those that speak for it are counted.
func (a *Answers) Replies(m *wire.Message, recipient wire.Address) (out Replies) {
	for _, it := range a.found()[asked{m.From, m.ID}].replies {
		if err := checkAnswer(a.root, m, it.Message, a.isPerson); err != nil {
			out.Others = append(out.Others, NoAnswer{it, err})
		} else if recipient == (wire.Address{}) || speaksFor(a.root, recipient, it.From, m) {
			out.Counted = append(out.Counted, it)
		}
	}
	return out
}

// IsAnswered reports whether a recipient has answered one of the messages, or there is nobody to answer. A reply counts as
// the answer, and so does an ack that says done or declined, or is of the member that took the message from a shared inbox:
// it means that the work is done, while any other ack means "I have it".
func (a *Answers) IsAnswered(m *wire.Message, recipient wire.Address) bool {
	if m.From.Host == "" {
		if sender, _ := a.root.Mailbox(m.From); sender == nil {
			return true
		}
	}
	if acks, err := a.Acks(m, recipient); err == nil {
		last := acks[len(acks)-1]
		if last.From != recipient || last.Outcome() == "done" || last.Outcome() == "declined" {
			return true
		}
	}
	return len(a.Replies(m, recipient).Counted) > 0
}

// HasFinished reports whether a member has acknowledged or answered one of the messages for one of its recipients.
func (a *Answers) HasFinished(m *wire.Message, recipient, by wire.Address) bool {
	isBy := func(it *wire.Item) bool { return it.From == by }
	acks, err := a.Acks(m, recipient)
	return err == nil && isBy(acks[len(acks)-1]) || slices.ContainsFunc(a.Replies(m, recipient).Counted, isBy)
}

// SetAnswer sets in f, of an answer to a question with choices that a member here has asked, whether it is none of them, and
// which answer its sender gave before.
func SetAnswer(r *teamdir.Root, m *wire.Message, f *letter.Flags) {
	q := questionOf(r, m)
	if q == nil || len(q.Choices) == 0 {
		return
	}
	f.NotChosen = q.Chosen(m.Body) == ""
	for _, before := range AnswersTo(context.Background(), r, q).Replies(q, wire.Address{}).Counted {
		if before.From == m.From && before.ID < m.ID {
			f.AnsweredBefore = before.ID
		}
	}
}

// questionOf returns what a reply answers, by the sent mail of its recipients here; nil: it is not there.
func questionOf(r *teamdir.Root, m *wire.Message) *wire.Message {
	if m.InReplyTo == "" || !IsReply(m) {
		return nil
	}
	for _, a := range m.To {
		if a.Host != "" {
			continue
		}
		if box, err := r.Mailbox(a); err == nil {
			if q, err := box.Sent(m.InReplyTo); err == nil {
				return q
			}
		}
	}
	return nil
}

// ReplyTo returns the recipients of an answer to parent: its sender, or with all everybody in it. An answer to one's
// own message goes to its recipients, except that one who has taken it from a shared inbox answers its sender.
func ReplyTo(ctx context.Context, r *teamdir.Root, parent *wire.Message, box *maildir.Box, all bool) []wire.Address {
	to, me := []wire.Address{parent.From}, box.Address()
	hasTaken := func() bool { // now, or before an earlier answer finished it
		from, err := FindLease(r, box, parent, me)
		isMine := func(it *wire.Item) bool { return it.From == me }
		return from != nil && err == nil || slices.ContainsFunc(AnswersTo(ctx, r, parent).Replies(parent, wire.Address{}).Counted, isMine)
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
func markAnswered(ctx context.Context, r *teamdir.Root, me *maildir.Box, parent *wire.Message) error {
	taken, takenErr := FindLease(r, me, parent, me.Address())
	if taken != nil && takenErr == nil {
		return taken.MarkAcked(ctx, parent.ID, me.Address())
	}
	it, err := me.Get(parent.ID)
	switch {
	case errors.Is(err, maildir.ErrNotFound): // it is in somebody else's mailbox
		return takenErr
	case err != nil:
		return err
	case parent.RequiresAck && (it.State == wire.Unread || it.State == wire.Owed):
		return me.MarkAcked(ctx, parent.ID, me.Address())
	case it.State == wire.Unread:
		return me.MarkRead(ctx, parent.ID)
	}
	return nil
}
