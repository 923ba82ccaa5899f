package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Post is a message on its way to one or more mailboxes. Its ID and From must be set.
type Post struct {
	Message      *wire.Message
	To           []*Box
	Given        bool      // the ID may have been used before: a readable message of that ID counts as delivered
	Sender       *Box      // whose index of sent mail gets the message; nil: none
	Outcomes     []Outcome // one for each recipient, set by Deliver
	SentIndexErr error     // why the message is not in Sender's index, set by Deliver; doctor can rebuild the index
}

// Outcome is the result of a post for one recipient.
type Outcome struct {
	Box           *Box
	Stored        bool // the message is in the mailbox, whatever Err says
	AlreadyStored bool // it was in the mailbox before
	Err           error

	// Used by Deliver.
	post *Post
	to   *target
	data []byte
	temp string // the file that becomes the message
}

// NotDurableError reports that a message was stored but may not survive a power cut. Deliver it again with the same ID.
type NotDurableError struct {
	ID  wire.ID
	Err error
}

func (e *NotDurableError) Error() string {
	return fmt.Sprintf("stored, but may not survive a power cut (%v)", e.Err)
}
func (e *NotDurableError) Unwrap() error { return e.Err }

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

// target is a mailbox that a call delivers to. Its inbox is opened once: a path below the team costs system calls for
// each of its directories.
type target struct {
	box    *Box
	inbox  *durable.Root
	err    error      // why open failed
	stored []*Outcome // moved to new, not synced yet
}

// open opens the inbox and makes its tmp.
func (t *target) open() error {
	b := t.box
	err := b.makeOutbox()
	if err != nil {
		return err
	}
	t.inbox, err = b.store.root.Sub(b.in("inbox"))
	switch {
	case absent(err):
		return b.noAgent() // even if it is back by now
	case err != nil:
		return cmp.Or(b.CheckPresent(), err)
	}
	if err := t.inbox.Mkdir("tmp"); err != nil {
		return err
	}
	if !t.inbox.OwnerCanRead("tmp") {
		return ErrUnreadable
	}
	return nil
}

// checkCurrent returns an error if the open inbox is no longer the mailbox's: the agent may have been retired, and
// another mailbox made in its place. The inbox lock is held.
func (t *target) checkCurrent() error {
	root := t.box.store.root
	opened, err := t.inbox.Lstat(".")
	now, e := root.Lstat(t.box.in("inbox"))
	err = cmp.Or(err, e, root.IsDir(t.box.in()), t.inbox.IsDir("new"))
	isOther := err == nil && !os.SameFile(opened, now)
	if isOther || absent(err) {
		return cmp.Or(t.box.CheckPresent(), t.box.noAgent())
	}
	return err
}

// Deliver delivers posts durably: if an Outcome has no error, the message survives a power cut. If the process is
// killed at any point, each message is whole or absent at each recipient. A failure at one recipient does not affect
// the others.
//
// First all files are written and synced in parallel; then each is moved into its mailbox under that mailbox's lock;
// then each mailbox's directory is synced once.
func Deliver(ctx context.Context, posts ...*Post) {
	targets := map[string]*target{} // by the path of the inbox
	var all []*Outcome
	for _, p := range posts {
		p.Outcomes = make([]Outcome, len(p.To))
		data, err := encode(p.Message)
		for i, b := range p.To {
			o := &p.Outcomes[i]
			*o = Outcome{Box: b, Err: err, post: p, data: data}
			if err == nil {
				inbox := b.store.root.Join(b.in("inbox"))
				if targets[inbox] == nil {
					targets[inbox] = &target{box: b}
					targets[inbox].err = targets[inbox].open()
				}
				o.to = targets[inbox]
				all = append(all, o)
			}
		}
	}
	sideBySide(all, func(o *Outcome) { o.Err = o.write() })
	for _, o := range all {
		if o.Err == nil {
			o.publish(ctx)
		}
	}
	sideBySide(slices.Collect(maps.Values(targets)), (*target).close)
	for _, p := range posts {
		p.noteSent()
	}
}

// noteSent adds the message to the sender's index if a recipient has it.
func (p *Post) noteSent() {
	at := slices.IndexFunc(p.Outcomes, func(o Outcome) bool { return o.Stored })
	if at < 0 || p.Sender == nil {
		return
	}
	sent := *p.Message
	if o := p.Outcomes[at]; o.AlreadyStored {
		if it, err := o.Box.Get(sent.ID); err == nil { // the text of the first delivery counts
			sent = *it.Message
		}
	}
	sent.To = p.Message.To
	_, p.SentIndexErr = p.Sender.NoteSent(&sent)
}

// write writes and syncs the message in the inbox's tmp.
func (o *Outcome) write() error {
	if o.to.err != nil {
		return o.to.err
	}
	err := o.to.box.NoteSuperseded(o.post.Message)
	if err == nil {
		o.temp = "tmp/" + string(o.post.Message.ID) + "." + string(wire.NewID())
		err = o.to.inbox.Create(o.temp, o.data)
	}
	if absent(err) { // retired a moment ago
		return o.to.box.noAgent()
	}
	return err
}

// publish moves the message into the mailbox, or removes the temp file.
func (o *Outcome) publish(ctx context.Context) {
	isThere, err := o.moveToNew(ctx)
	if isThere || err != nil {
		o.to.inbox.Remove(o.temp)
	}
	if isThere && o.Box.host != "" {
		if it, e := o.Box.Get(o.post.Message.ID); e == nil && !slices.Contains(it.To, o.Box.Address()) {
			err = fmt.Errorf("message %s is in the outbox of host %s for others only: send this one with an id of its own", it.ID.Short(6), o.Box.host)
		}
	}
	if err != nil {
		o.Err = err
		return
	}
	o.Stored, o.AlreadyStored = true, isThere
	isSamePost := func(other *Outcome) bool { return other.post == o.post }
	if i := slices.IndexFunc(o.to.stored, isSamePost); i >= 0 {
		o.AlreadyStored = o.to.stored[i].AlreadyStored // the members of a host share an outbox
	}
	o.to.stored = append(o.to.stored, o)
}

// moveToNew moves the temp file to new, unless the message is there already. Nobody else delivers under an ID that this
// call made, so a shared lock is enough. It renames, since Claude Code's sandbox on macOS forbids hard links.
func (o *Outcome) moveToNew(ctx context.Context) (isThere bool, err error) {
	b, id := o.to.box, o.post.Message.ID
	mode := lockfile.Shared
	if o.post.Given {
		mode = lockfile.Exclusive
	}
	unlock, err := b.store.lock(ctx, b.lockName("inbox"), mode, b.CheckPresent)
	if err != nil {
		return false, err
	}
	defer unlock()
	if err := o.to.checkCurrent(); err != nil {
		return false, err
	}
	if o.post.Given {
		if isThere, err := b.isDelivered(id); isThere || err != nil {
			return isThere, err
		}
	}
	err = o.to.inbox.Move(o.temp, "new/"+fileOf(id))
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	return false, err
}

// isDelivered reports whether the mailbox has the message. A file of that name that is not a message, as a power cut
// may leave, is moved to bad. The inbox lock is held.
func (b *Box) isDelivered(id wire.ID) (bool, error) {
	for {
		p, isThere, err := b.locate(id)
		if !isThere || err != nil {
			return false, err
		}
		_, err = b.open(p, id)
		bad, isBad := errors.AsType[*BadError](err)
		switch {
		case errors.Is(err, ErrNotFound): // moved meanwhile
		case err == nil || isBad && bad.Unreadable != nil:
			return true, nil
		case !isBad:
			return false, err
		case !b.setAsideBad(p, bad):
			return false, fmt.Errorf("%s is not a message and cannot be set aside now", p.file(id))
		}
	}
}

// close syncs new if a message was moved there, and closes the inbox.
func (t *target) close() {
	if len(t.stored) > 0 {
		if err := t.inbox.Sync("new"); err != nil {
			for _, o := range t.stored {
				o.Err = &NotDurableError{o.post.Message.ID, err}
			}
		}
	}
	if t.inbox != nil {
		t.inbox.Close()
	}
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
		err = b.mkdir(at.dir)
	}
	if err == nil {
		err = b.store.root.Replace(at.file(m.ID), data, false)
	}
	return err == nil, err
}

// sideBySide calls f for all, 16 in parallel: their syncs then share the disk's flushes.
func sideBySide[T any](all []T, f func(T)) {
	if len(all) == 1 {
		f(all[0]) // a goroutine would cost a single delivery a visible thread switch
		return
	}
	for some := range slices.Chunk(all, 16) {
		var wg sync.WaitGroup
		for _, x := range some {
			wg.Go(func() { f(x) })
		}
		wg.Wait()
	}
}
