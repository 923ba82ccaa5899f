package maildir

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Post is a message on its way to one or more mailboxes. Its ID and From must be set.
type Post struct {
	Message      *wire.Message
	To           []*Box
	Given        bool      // the ID may have been used before: then that message counts as delivered if CheckSame says so
	Sender       *Box      // whose index of sent mail gets the message; nil: none
	Outcomes     []Outcome // one for each recipient, set by Deliver
	SentIndexErr error     // why the message is not in Sender's index, set by Deliver; doctor can rebuild the index

	// Derived is set for a derived ID and one recipient, and reports whether a message with that ID is this one. If it is
	// not, Deliver takes the next ID (wire.ID.Next): whoever knows the parent can send something under a derived ID.
	Derived func(old *wire.Message) bool

	Temp string // the temp file's name in tmp, if nobody else uses it: a killed delivery's is replaced
}

// Outcome is the result of a post for one recipient.
type Outcome struct {
	wire.Receipt
	Box *Box

	post  *Post
	at    *target
	data  []byte   // the encoded message
	place string   // where it becomes one, in the target's inbox
	temp  string   // the file that becomes the message, in the target's inbox
	first *Outcome // the post's earlier outcome for the same mailbox: the members of a host share an outbox
}

// IDTakenError says that another message has the ID of the one that was to be delivered.
type IDTakenError struct {
	ID      wire.ID
	By      wire.Address // its sender
	IsYours bool         // that is the sender of the other one too
}

func (e *IDTakenError) Error() string {
	if e.IsYours {
		return fmt.Sprintf("%s was already sent, with another text or other fields; this one was not sent", e.ID.Short(6))
	}
	return fmt.Sprintf("message %s is from %s, not from you", e.ID.Short(6), e.By)
}

func (e *IDTakenError) Is(target error) bool { return target == ErrIDTaken }

// checkSame returns an *IDTakenError if a message with the post's ID, from an earlier call, is not the post's.
func (p *Post) checkSame(old *wire.Message) error {
	switch {
	case p.Derived == nil:
		return CheckSame(old, p.Message)
	case !p.Derived(old):
		return &IDTakenError{p.Message.ID, old.From, old.From == p.Message.From}
	}
	return nil
}

// CheckSame returns an *IDTakenError if a message that is sent under an id is not the one that was sent under it before.
// What is counted from the moment of sending does not count, nor whom it goes to, how it came, and whether an answer is
// waited for: a script may send first, and ask later.
func CheckSame(old, again *wire.Message) error {
	said := func(m *wire.Message) []byte {
		content := *m
		content.ID, content.To, content.Origin, content.Hop, content.ReplyWanted = "", nil, nil, 0, ""
		content.SentAt, content.ExpiresAt, content.DueAt, content.NotBefore = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		data, _ := content.MarshalJSON() // both can be written: one was read, the other is checked before
		return data
	}
	if !bytes.Equal(said(old), said(again)) {
		return &IDTakenError{again.ID, old.From, old.From == again.From}
	}
	return nil
}

// NotDurableError reports that a message was stored but may not survive a power cut. Deliver it again with the same ID.
type NotDurableError struct {
	ID  wire.ID
	Err error
}

func (e *NotDurableError) Error() string {
	return fmt.Sprintf("stored, but may not survive a power cut (%v)", e.Err)
}
func (e *NotDurableError) Unwrap() error        { return e.Err }
func (e *NotDurableError) Is(target error) bool { return target == ErrNotDurable }

// ContentError reports why a message's content cannot be sent.
type ContentError struct{ error }

// Check validates a message's content before anything is written: UTF-8, no NUL, the size, and that it can be read
// back. The error is a *ContentError.
func Check(m *wire.Message) error {
	_, err := encode(m)
	return err
}

func encode(m *wire.Message) (data []byte, err error) {
	text := strings.Join([]string{m.Body, m.Subject, m.Type, string(m.Meta), string(m.Payload)}, " ")
	if !utf8.ValidString(text) {
		err = errors.New("the text is not UTF-8")
	} else if strings.Contains(text, "\x00") {
		err = errors.New("the text has a NUL")
	} else if data, err = m.Encode(); err == nil {
		_, err = wire.Decode(data) // a message that cannot be read back would end in bad
	}
	if err != nil {
		return nil, &ContentError{err}
	}
	return data, nil
}

// Deliver delivers posts durably: if an Outcome has no error, the message survives a power cut. If the process is
// killed at any point, each message is whole or absent at each recipient. A failure at one recipient does not affect
// the others.
//
// First all files are written and synced in parallel; then those of each mailbox are moved to new under its lock; then
// each new is synced once.
func Deliver(ctx context.Context, posts ...*Post) {
	var targets []*target
	var all []*Outcome
	known := map[string]*target{} // by the path of the mailbox
	for _, p := range posts {
		p.Outcomes = make([]Outcome, len(p.To))
		data, err := encode(p.Message)
		for i, b := range p.To {
			o := &p.Outcomes[i]
			*o = Outcome{Receipt: wire.Receipt{Address: b.Address(), Err: err}, Box: b, post: p, data: data}
			if b.as != "" && err == nil {
				o.data, o.Err = encode(b.MessageThere(p.Message))
			}
			if o.Err != nil {
				continue
			}
			t := known[b.Path()]
			if t == nil {
				t = &target{box: b}
				if b.as != "" { // the other root may be a stranger's
					t.err = b.store.MayAct(ctx)
				}
				if t.err == nil {
					t.inbox, t.err = b.openInbox()
				}
				if t.err == nil {
					defer t.inbox.Close()
				}
				known[b.Path()], targets = t, append(targets, t)
			}
			o.at = t
			n := len(t.outcomes)
			switch {
			case t.err != nil:
				o.Err = t.err
			case n > 0 && t.outcomes[n-1].post == p:
				o.first = t.outcomes[n-1]
			default:
				t.outcomes, all = append(t.outcomes, o), append(all, o)
			}
		}
	}
	InParallel(all, (*Outcome).write)
	for _, t := range targets {
		t.publish(ctx)
	}
	InParallel(targets, (*target).sync)
	var again, made []*Post
	for _, p := range posts {
		if p.Derived != nil && len(p.Outcomes) > 0 && isTaken(p.Outcomes[0].Err) {
			p.Message.ID = p.Message.ID.Next()
			again = append(again, p)
		} else if p.isOld() { // two of them may be one message, to different recipients
			p.finish(ctx)
		} else {
			made = append(made, p)
		}
	}
	InParallel(made, func(p *Post) { p.finish(ctx) })
	if len(again) > 0 {
		Deliver(ctx, again...)
	}
}

func isTaken(err error) bool {
	_, isTaken := errors.AsType[*IDTakenError](err)
	return isTaken
}

// target is a mailbox that a call delivers to.
type target struct {
	box      *Box
	inbox    *Inbox
	err      error      // why nothing can be written there; then there are no outcomes
	outcomes []*Outcome // one for each post
}

// write writes and syncs the message in the mailbox's tmp.
func (o *Outcome) write() {
	o.temp = "tmp/" + cmp.Or(o.post.Temp, string(o.post.Message.ID)+"."+string(wire.NewID()))
	if o.post.Temp != "" {
		o.Err = o.at.inbox.Remove(o.temp)
	}
	if o.Err == nil {
		o.Err = o.at.inbox.Create(o.temp, o.data)
	}
	if durable.IsAbsent(o.Err) { // retired a moment ago
		o.Err = o.Box.noAgent()
	}
}

// publish moves the written messages into the mailbox. Nobody else delivers under an ID that this call made, so a
// shared lock is enough for those.
func (t *target) publish(ctx context.Context) {
	if len(t.outcomes) == 0 {
		return
	}
	mode := lockfile.Shared
	if slices.ContainsFunc(t.outcomes, func(o *Outcome) bool { return o.post.isOld() }) {
		mode = lockfile.Exclusive
	}
	unlock, err := t.inbox.Lock(ctx, mode)
	if err == nil {
		defer unlock()
	}
	for _, o := range t.outcomes {
		if o.Err != nil {
			continue
		}
		if o.Err = err; err == nil {
			o.WasDelivered, o.Err = o.moveToNew()
		}
		if o.IsStored = o.Err == nil; !o.IsStored || o.WasDelivered {
			t.inbox.Remove(o.temp)
		}
	}
}

// moveToNew moves the temp file to new, unless the message is in the mailbox already. It renames, since Claude Code's
// sandbox on macOS forbids hard links. A mailbox that was retired took the temp file along.
func (o *Outcome) moveToNew() (isThere bool, err error) {
	b := o.Box
	if o.post.isOld() {
		if isThere, err := o.isDelivered(); isThere || err != nil {
			return isThere, err
		}
	}
	o.place = b.placeFor(o.post.Message)
	for range looks { // the last message may just have left a directory of mail that waits
		if o.place != "new" {
			err = o.at.inbox.MkdirAll(o.place)
		}
		if err == nil {
			err = o.at.inbox.Move(o.temp, o.place+"/"+FileName(o.post.Message.ID))
		}
		if o.place == "new" || !durable.IsAbsent(err) {
			break
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist): // put there by a program that takes no lock
		return o.isDelivered()
	case durable.IsAbsent(err):
		return false, cmp.Or(b.CheckPresent(), b.noAgent())
	}
	return false, err
}

// isOld reports whether the post's ID may have been used before.
func (p *Post) isOld() bool { return p.Given || p.Derived != nil }

// isDelivered reports whether the mailbox has the post's message, with an *IDTakenError if it has another one with that
// ID. A file of that name that is not a message, as a power cut may leave, is moved to bad. The inbox lock is held.
func (o *Outcome) isDelivered() (bool, error) {
	b, post := o.Box, o.post
	for id := post.Message.ID; ; {
		p, isThere, err := b.Locate(id)
		if !isThere || err != nil {
			return false, err
		}
		it, err := b.Open(p, id)
		bad, isBad := errors.AsType[*BadError](err)
		switch {
		case err == nil:
			err = post.checkSame(it.Message)
			return err == nil, err
		case errors.Is(err, ErrNotFound): // moved meanwhile
		case !isBad || bad.Unreadable != nil:
			return true, nil
		case !b.MoveBadMessage(p, bad):
			return false, fmt.Errorf("%s is not a message and cannot be set aside now", p.File(id))
		}
	}
}

// sync makes the messages that are stored survive a power cut.
func (t *target) sync() {
	stored := slices.DeleteFunc(slices.Clone(t.outcomes), func(o *Outcome) bool { return !o.IsStored })
	if len(stored) == 0 {
		return
	}
	synced := map[string]error{}
	sync := func(dir string) error {
		if _, isSynced := synced[dir]; !isSynced {
			synced[dir] = t.inbox.Sync(dir)
		}
		return synced[dir]
	}
	for _, o := range stored {
		err := sync(cmp.Or(o.place, "new"))
		if strings.HasPrefix(o.place, "held/") { // the directories are new, perhaps
			err = cmp.Or(err, sync("held"), sync("."))
		}
		if err != nil {
			o.Err = &NotDurableError{o.post.Message.ID, err}
		}
	}
}

// finish completes the outcomes, withdraws what the message replaces, and adds it to the sender's index if a recipient
// has it.
func (p *Post) finish(ctx context.Context) {
	for i := range slices.Backward(p.Outcomes) {
		o := &p.Outcomes[i]
		o.ID = p.Message.ID
		if o.first != nil {
			o.IsStored, o.WasDelivered, o.Err = o.first.IsStored, o.first.WasDelivered, o.first.Err
		}
		// An outbox has one file for the members of its host: one that lies there need not be for this member.
		if o.WasDelivered && o.Box.host != "" {
			it, err := o.Box.Get(p.Message.ID)
			if err == nil && !slices.Contains(it.To, o.Box.Address()) {
				o.IsStored, o.WasDelivered = false, false
				o.Err = fmt.Errorf("message %s is in the outbox of host %s for others only: send this one with an id of its own",
					it.ID.Short(6), o.Box.host)
			}
		}
	}
	for _, o := range p.Outcomes {
		if o.IsStored {
			o.Box.withdrawReplaced(ctx, p.Message)
		}
	}
	at := slices.IndexFunc(p.Outcomes, func(o Outcome) bool { return o.IsStored })
	if at < 0 || p.Sender == nil {
		return
	}
	sent := *p.Message
	if o := p.Outcomes[at]; o.WasDelivered {
		if it, err := o.Box.Get(sent.ID); err == nil { // the text of the first delivery counts
			sent = *it.Message
		}
	}
	sent.To = p.Message.To
	_, p.SentIndexErr = p.Sender.NoteSent(&sent)
}

// NoteSent adds a message to the owner's index of sent mail and reports whether the message or one of its recipients
// was missing there. The index is not synced: doctor can rebuild it.
func (b *Box) NoteSent(m *wire.Message) (isNew bool, err error) {
	if noted, err := b.Sent(m.ID); err == nil {
		before := len(noted.To)
		for _, a := range m.To {
			if !slices.Contains(noted.To, a) {
				noted.To = append(noted.To, a)
			}
		}
		if m = noted; len(m.To) == before {
			return false, nil
		}
	}
	at := b.sent(m.ID)
	data, err := m.Encode()
	if err == nil {
		err = b.Mkdir(at.Dir)
	}
	if err == nil {
		err = b.store.root.Replace(at.File(m.ID), data, false)
	}
	return err == nil, err
}
