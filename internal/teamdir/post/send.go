// Package post sends messages, and knows what counts as the ack or the answer of one, and how far it got.
package post

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/once"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/wire"
)

// Outgoing is a message that a member sends. It needs From, To and Message.
type Outgoing struct {
	From    *maildir.Box
	To      []wire.Address
	Message *wire.Message                // its content, with or without an id; whatever sends it sets its other fields
	Files   []File                       // what is attached to it
	Parent  *wire.Message                // the message that it answers, or nil
	Person  bool                         // a person sends it from outside an agent's environment: that ends a chain of hops
	Derived func(old *wire.Message) bool // as in maildir.Post, if the message has a derived id

	// Once is an idempotency key of the sender's: under the same name, recipients and parent it is always the same
	// message, with the same id. Named are the recipients as they count for that, where one of them stands for several
	// (all@main, @reviewers@main), whoever that is; nil: To.
	Once  string
	Named []string
}

// File is a file that goes with a message. Its content is read once for each team that gets the message.
type File struct {
	Name    string
	Content io.ReadSeeker
}

// Sent says what became of a message.
type Sent struct {
	To       []Recipient // the unknown ones last; nil: nothing was sent
	Err      error       // for all that it did not reach, and for Unmarked
	Unmarked error       // why the message that it answers is not marked; nil: it is, or need not be
	Unlisted error       // why it is not in the sender's index of sent mail; doctor can rebuild that
}

// A Result is a Sent or an Acked as package teams has it.
type Result[T any] struct{ is T }

// ResultOf returns what package teams converts.
func ResultOf[T any](is T) *Result[T] { return &Result[T]{is} }

// Is returns what it is.
func (r *Result[T]) Is() T { return r.is }

// Recipient says what became of a message at one of its recipients.
type Recipient struct {
	wire.Receipt
	Push push.Outcome // what was given to its program
}

// ErrTooManyHops refuses a reply in a chain of MaxHops replies within an hour.
var ErrTooManyHops = errors.New("too many replies to replies within an hour")

// Send sends a message, and marks the one that it answers once it has reached that one's sender, or anybody if that is
// the sender's own. A recipient that it does not reach does not keep it from the others. The error is Sent.Err.
//
// A process that is killed at any point may send it again under the same key or id: it stays one message. Another one
// under that key or id is a *maildir.IDTakenError, and nobody gets it.
func Send(ctx context.Context, r *teamdir.Root, o *Outgoing) (*Sent, error) {
	sent := SendAll(ctx, r, []*Outgoing{o})[0]
	return sent, sent.Err
}

// SendAll is Send for several messages, which reach each recipient in their order. They are written side by side, and so
// share the disk's flushes. None may answer or replace an earlier one of them.
func SendAll(ctx context.Context, r *teamdir.Root, all []*Outgoing) []*Sent {
	sent, push := store(ctx, r, all...)
	push()
	return sent
}

// store is SendAll without giving the messages to anybody's program: the function does that, once no lock is held, and completes
// the Recipients.
func store(ctx context.Context, r *teamdir.Root, all ...*Outgoing) ([]*Sent, func()) {
	sent := make([]*Sent, len(all))
	posts, unknown := make([]*maildir.Post, len(all)), make([][]Recipient, len(all))
	var ready []*maildir.Post
	for i, o := range all {
		sent[i] = &Sent{}
		posts[i], unknown[i], sent[i].Err = prepare(r, o)
		if sent[i].Err == nil {
			ready = append(ready, posts[i])
		}
	}
	maildir.Deliver(ctx, ready...)
	reached := recipients(ready)
	for i, p := range posts {
		s := sent[i]
		if s.Err != nil {
			continue
		}
		s.To = append(reached[0], unknown[i]...)
		reached = reached[1:]
		if len(s.To) == 0 {
			s.Err = errors.New("send a message: it has no recipient")
			continue
		}
		s.Unmarked, s.Unlisted = markParent(ctx, r, all[i], s), p.SentIndexErr
		errs := []error{s.Unmarked}
		for _, to := range s.To {
			errs = append(errs, to.Err)
		}
		s.Err = errors.Join(errs...)
	}
	return sent, func() {
		pushed := push.All(ctx, r, ready)
		for _, s := range sent {
			for i := range s.To {
				s.To[i].Push = pushed[s.To[i].Address]
			}
		}
	}
}

// prepare completes a message, finds its recipients' mailboxes, notes its key and stores its files.
func prepare(r *teamdir.Root, o *Outgoing) (post *maildir.Post, unknown []Recipient, err error) {
	m := o.Message
	post = &maildir.Post{Message: m, Given: m.ID != "", Derived: o.Derived, Sender: o.From}
	m.ID = cmp.Or(m.ID, wire.NewID())
	if err := CheckID(m.ID); err != nil {
		return nil, nil, err
	}
	m.From, m.To = o.From.Address(), nil
	m.SentAt = cmp.Or(m.SentAt, time.Now().UTC())
	m.Origin = OrCommand(m.Origin)
	if p := o.Parent; p != nil {
		m.InReplyTo, m.Thread = p.ID, cmp.Or(m.Thread, p.ThreadID())
		if m.Choice = p.Chosen(m.Body); m.Choice != "" {
			m.Body = m.Choice // not its number
		}
		if !o.Person {
			m.Hop = p.NextHop()
		}
		if m.Hop >= wire.MaxHops && isHot(r, o) {
			return nil, nil, fmt.Errorf("%w: this would be number %d", ErrTooManyHops, m.Hop)
		}
	}
	for _, a := range unique(o.To) {
		b, err := recipient(r, m.From, a)
		if err != nil {
			unknown = append(unknown, Recipient{Receipt: wire.Receipt{Address: a, Err: err}})
			continue
		}
		m.To = append(m.To, a)
		post.To = append(post.To, b)
	}
	if err := maildir.Check(m); err != nil {
		return nil, nil, err
	}
	if o.Once != "" {
		if m.ID, err = o.idOfKey(); err != nil {
			return nil, nil, err
		}
		post.Given = true
	}
	if err := o.attach(post); err != nil {
		return nil, nil, err
	}
	if before, err := o.From.Sent(m.ID); err == nil && post.Given && o.Derived == nil { // also for those who have not got it
		return post, unknown, maildir.CheckSame(before, m)
	}
	return post, unknown, nil
}

// recipient finds the mailbox of a recipient of somebody's message.
func recipient(r *teamdir.Root, from, a wire.Address) (*maildir.Box, error) {
	if a.Host != "" && a.Team != from.Team {
		return nil, fmt.Errorf("%s: only its own team can send to a member on another host, or of another project", a)
	}
	b, err := r.Mailbox(a)
	if err != nil || !r.IsRemote(a) {
		return b, err
	}
	t, _ := r.Team(a.Team)
	if _, unknown := presence.One(context.Background(), t, t.NameOf(a)); errors.Is(unknown, maildir.ErrNoMailbox) {
		return nil, unknown // but unreadable rows do not prevent sending
	}
	return b, nil
}

// recipients says what became of each message at each recipient.
func recipients(posts []*maildir.Post) [][]Recipient {
	all := make([][]Recipient, len(posts))
	for i, post := range posts {
		if post == nil {
			continue
		}
		for _, out := range post.Outcomes {
			all[i] = append(all[i], Recipient{Receipt: out.Receipt})
		}
	}
	return all
}

// attach stores the files with every team that gets the message.
func (o *Outgoing) attach(post *maildir.Post) error {
	stored := map[*maildir.Store]bool{}
	for _, box := range post.To {
		store := box.Store()
		if stored[store] || len(o.Files) == 0 {
			continue
		}
		stored[store], o.Message.Attachments = true, nil
		for _, f := range o.Files {
			if _, err := f.Content.Seek(0, io.SeekStart); err != nil {
				return err
			}
			a, err := filestore.Add(store.Dir(), f.Name, f.Content)
			if err != nil {
				return err
			}
			o.Message.Attachments = append(o.Message.Attachments, a)
		}
	}
	return nil
}

// OrCommand returns the origin of what is sent: without one it would look like a file of another program.
func OrCommand(o *wire.Origin) *wire.Origin { return cmp.Or(o, &wire.Origin{Via: "cli"}) }

// isHot reports whether MaxHops-1 answers within an hour led to the parent, as far as the messages are here: a hop alone
// is what its sender says. Where the sender's own mail lacks a link, as in a ring of three, the answers in the thread
// count that the team's members have.
func isHot(r *teamdir.Root, o *Outgoing) bool {
	isRecent := func(m *wire.Message) bool { return m.InReplyTo != "" && time.Since(m.SentAt) < time.Hour }
	n := 0
	for at := o.Parent; at != nil && n < wire.MaxHops-1; n++ {
		if !isRecent(at) {
			return false
		}
		at = search.OwnMessage(o.From, at.InReplyTo)
	}
	if n == wire.MaxHops-1 {
		return true
	}
	t, err := r.Team(o.From.Address().Team)
	if err != nil {
		return false
	}
	thread, _ := search.Thread(context.Background(), t, o.Parent.ThreadID())
	thread = slices.DeleteFunc(thread, func(it *wire.Item) bool { return !isRecent(it.Message) })
	return len(thread) >= wire.MaxHops-1
}

// idOfKey returns the id of the message under its idempotency key.
func (o *Outgoing) idOfKey() (wire.ID, error) {
	key := &once.Key{Name: o.Once, To: slices.Clone(o.Named)}
	for _, a := range o.To {
		if o.Named == nil {
			key.To = append(key.To, a.String())
		}
	}
	slices.Sort(key.To)
	key.To = slices.Compact(key.To)
	if o.Parent != nil {
		key.Re = o.Parent.ID
	}
	if _, err := once.SetID(o.From, key); err != nil {
		return "", fmt.Errorf("record the key %q: %w", o.Once, err)
	}
	return key.ID, nil
}

// markParent marks the message that was answered, unless the answer did not get to whom it is for.
func markParent(ctx context.Context, r *teamdir.Root, o *Outgoing, sent *Sent) error {
	isReached := func(to Recipient) bool {
		return to.Err == nil && (o.Parent.From == to.Address || o.Parent.From == o.From.Address())
	}
	if o.Parent == nil || !slices.ContainsFunc(sent.To, isReached) || doubt(o.Message, persons(r)) != "" {
		return nil // what the member itself has not answered waits for it
	}
	err := markAnswered(ctx, r, o.From, o.Parent)
	if _, isLeased := errors.AsType[*maildir.LeasedError](err); isLeased || errors.Is(err, maildir.ErrNotHeld) {
		return fmt.Errorf("it does not count as an ack: %w", err)
	} else if err != nil {
		return fmt.Errorf("the message you answered is not marked: %w", err)
	}
	return nil
}

// StoreFor is store for one message to one member of the team. The Recipient is never nil.
func StoreFor(ctx context.Context, t *teamdir.Team, from *maildir.Box, to wire.Name, m *wire.Message) (_ *Recipient, push func(), err error) {
	sent, push := store(ctx, t.Root(), &Outgoing{From: from, To: []wire.Address{{Agent: to, Team: t.Name}}, Message: m})
	if len(sent[0].To) == 0 {
		return &Recipient{}, push, sent[0].Err
	}
	return &sent[0].To[0], push, sent[0].Err
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
