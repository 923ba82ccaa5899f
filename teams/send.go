package teams

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/reply"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// Message is what a member sends. It needs From, Text or a Payload or Files, and To unless it answers a message.
type Message struct {
	From    wire.Name
	To      []string      // bob; in another team of the root bob@web; a group or a role: @dev; every other member: all
	Answers *wire.Message // the message that it answers, which it marks as read, or as acknowledged; nil: none
	Subject string
	Text    string
	Payload json.RawMessage // an object for programs; nil: none
	Files   []File

	IsUrgent    bool
	WantsReply  bool
	RequiresAck bool
	Due         time.Time // when the answer is due; zero: never

	// Once is a key of the sender's: under the same key, recipients and Answers it is always the same message, which is
	// delivered once, however often it is sent. If it says something else, the error is ErrOtherText; Due and WantsReply may
	// differ. At most 200 bytes. "": each is another message.
	Once string
}

// File is a file that goes with a message.
type File struct {
	Name    string
	Content io.ReadSeeker
}

// Send sends a message, also to several members, and returns its id and what became of it at each of them. One that it
// does not reach does not keep it from the others; the error is for all of those. Without recipients in the result
// nothing was sent.
func (t *Team) Send(ctx context.Context, m Message) (id wire.ID, to []wire.Receipt, err error) {
	out, err := t.outgoing(ctx, m)
	if err != nil {
		return "", nil, err
	}
	sent, err := post.Send(ctx, t.in().Root(), out)
	if sent == nil {
		return "", nil, err
	}
	id = out.Message.ID
	for _, r := range sent.To {
		to = append(to, r.Receipt)
	}
	return id, to, err
}

// Ask sends a message to one member and waits for what comes first: a reply that counts, or the end of the turn in which
// the member's program got the question. The reply stays unread in the mailbox of From. A person answers with a reply
// only. If the member declines, the error says so.
//
// A program that was killed asks again under the same key: the question is sent once, and the answer may be there
// already. With another question under that key the error is ErrOtherText. If ctx ends first, it is that of ctx.
func (t *Team) Ask(ctx context.Context, m Message) (history.Answer, error) {
	m.WantsReply = true
	out, err := t.outgoing(ctx, m)
	if err != nil {
		return history.Answer{}, err
	}
	r, err := reply.Ask(ctx, t.in().Root(), out, reply.Observer{})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil { // while it was sent, as while it waits
		err = context.Cause(ctx)
	}
	a := r.Answer
	if err != nil && !r.To.IsStored {
		a.ID = ""
	}
	if r.Reply != nil {
		a.Message = r.Reply.Message
	}
	return a, err
}

func (t *Team) outgoing(ctx context.Context, m Message) (*post.Outgoing, error) {
	if m.From == "" {
		return nil, errors.New("send a message: it needs From")
	}
	from, err := t.in().Member(m.From)
	if err != nil {
		return nil, err
	}
	if m.Text == "" && m.Payload == nil && len(m.Files) == 0 {
		return nil, errors.New("send a message: it is empty")
	}
	w := &wire.Message{
		Subject: m.Subject, Body: m.Text, Payload: m.Payload, RequiresAck: m.RequiresAck, DueAt: m.Due, Origin: origin(),
	}
	if m.IsUrgent {
		w.Priority = "urgent"
	}
	if m.WantsReply {
		w.ReplyWanted = "yes"
	}
	out := &post.Outgoing{From: from, Message: w, Parent: m.Answers, Once: m.Once}
	if m.Answers != nil && len(m.To) == 0 {
		out.To = post.ReplyTo(ctx, t.in().Root(), m.Answers, from, false)
	} else if out.To, out.Named, err = presence.Recipients(t.in(), from.Address(), m.To...); err != nil {
		return nil, fmt.Errorf("send a message to %s: %w", strings.Join(m.To, ","), err)
	}
	for _, f := range m.Files {
		if f.Content == nil {
			return nil, fmt.Errorf("send a message: the file %q has no content", f.Name)
		}
		out.Files = append(out.Files, post.File(f))
	}
	return out, nil
}

// origin says where a message comes from: see the package's comment for what follows from it.
func origin() *wire.Origin { return &wire.Origin{Via: "library"} }

// Ack acknowledges a message that a member has got, or a job that it has taken, with a text or "". A job is done then. It may
// be called again. Errors: mailbox.ErrNotFound, ErrNotCounted in the name of a person.
func (t *Team) Ack(ctx context.Context, member wire.Name, id wire.ID, text string) error {
	me, err := t.in().Member(member)
	if err != nil {
		return err
	}
	box := me
	it, err := me.Get(id)
	if errors.Is(err, maildir.ErrNotFound) {
		box, it, err = t.taken(me, id)
	}
	if err == nil && it.State == wire.Withdrawn {
		err = maildir.ErrWithdrawn
	}
	if err == nil {
		_, err = post.Ack(ctx, t.in().Root(), me, box, it.Message, &wire.Message{Body: text, Origin: origin()})
	}
	if err != nil {
		return fmt.Errorf("ack %s: %w", id.Short(6), err)
	}
	return nil
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

// taken finds a job that a member has taken, and the inbox that it is from.
func (t *Team) taken(me *maildir.Box, id wire.ID) (*maildir.Box, *wire.Item, error) {
	boxes, err := t.in().Boxes()
	for _, box := range boxes {
		if isShared, _ := claim.Shared(box); !isShared {
			continue
		}
		if it, bad := box.Get(id); bad == nil {
			box, err = post.FindLease(t.in().Root(), box, it.Message, me.Address())
			if box == nil && err == nil {
				err = maildir.NotHeld(id)
			}
			return box, it, err
		}
	}
	return nil, nil, cmp.Or(err, maildir.ErrNotFound)
}

// Delivery says how far a message got at one of its recipients.
type Delivery struct {
	To     wire.Address
	State  wire.State      // "": not known
	Stages []history.Stage // those that it has reached
	Err    error           // why its state is not known
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
