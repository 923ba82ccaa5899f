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

// Post is one message, whose ID and From must be set, on its way to one or more mailboxes. Given says that the id was
// not made by this call: brought by the caller, or derived. Then the message is looked for first, and one that is there,
// and can be read, counts as delivered.
type Post struct {
	Message  *wire.Message
	To       []*Box
	Given    bool
	Sender   *Box      // who notes it in the index of sent mail; nil: nobody
	Outcomes []Outcome // one a recipient, filled in by Deliver
	NotNoted error     // why Sender's index has not got it, from Deliver; doctor can rebuild that
}

// Outcome is what became of a post at one recipient.
type Outcome struct {
	Box    *Box
	Stored bool // the message is in the mailbox, whatever Err says
	Known  bool // it was there before
	Err    error

	// On the way.
	post *Post
	to   *target
	data []byte
	temp string // the file that is moved to new
}

// NotDurableError says that a message was stored but could not be made to survive a power cut. Delivering
// again with the same id is the way on.
type NotDurableError struct {
	ID    wire.ID
	Given bool // as in Post: whoever delivered it does so again under the same id
	Err   error
}

func (e *NotDurableError) Error() string {
	return fmt.Sprintf("stored, not known to survive a power cut (%v)", e.Err)
}
func (e *NotDurableError) Unwrap() error { return e.Err }

// ContentError says what about a message's content cannot be sent.
type ContentError struct{ error }

// Check says what is wrong with a message's content, before anything is written: text that is not UTF-8,
// a NUL, a size, or whatever would keep it from being read back. The error is a *ContentError.
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
		_, err = wire.Decode(data) // delivered and then set aside as bad, it would be lost
	}
	if err != nil {
		return nil, &ContentError{err}
	}
	return data, nil
}

// target is a mailbox that one call delivers to. Its inbox is opened once for the call: each look by path
// costs as many system calls as the path has directories.
type target struct {
	box    *Box
	inbox  *durable.Root
	err    error      // why nothing can be delivered there
	stored []*Outcome // what was moved to new, and is not synced yet
}

// open opens the inbox, and makes what is missing of it.
func (t *target) open() error {
	b := t.box
	err := b.makeOutbox()
	if err != nil {
		return err
	}
	t.inbox, err = b.store.root.Sub(b.in("inbox"))
	switch {
	case absent(err):
		return b.noAgent() // though it may be back by now
	case err != nil:
		return cmp.Or(b.Present(), err)
	}
	if err := t.inbox.Mkdir("tmp"); err != nil {
		return err
	}
	if !t.inbox.OwnerCanRead("tmp") {
		return ErrUnreadable
	}
	return nil
}

// current is nil if the inbox that was opened is the mailbox's still: it may have been retired, and
// another made in its place. The inbox's lock is held.
func (t *target) current() error {
	root := t.box.store.root
	opened, err := t.inbox.Lstat(".")
	now, e := root.Lstat(t.box.in("inbox"))
	err = cmp.Or(err, e, root.IsDir(t.box.in()), t.inbox.IsDir("new"))
	isOther := err == nil && !os.SameFile(opened, now)
	if isOther || absent(err) {
		return cmp.Or(t.box.Present(), t.box.noAgent())
	}
	return err
}

// Deliver delivers posts, durably: when an Outcome has no error, the message survives a power cut. Killed at any point,
// each message is whole or absent at each recipient. A failure at one recipient undoes nothing elsewhere.
//
// All files are written and synced side by side; then each is moved into its mailbox under that
// mailbox's lock; then each mailbox's directory is synced once.
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

// noteSent notes in the sender's index what a recipient has of the message.
func (p *Post) noteSent() {
	at := slices.IndexFunc(p.Outcomes, func(o Outcome) bool { return o.Stored })
	if at < 0 || p.Sender == nil {
		return
	}
	sent := *p.Message
	if o := p.Outcomes[at]; o.Known {
		if it, err := o.Box.Get(sent.ID); err == nil { // perhaps with another text
			sent = *it.Message
		}
	}
	sent.To = p.Message.To
	_, p.NotNoted = p.Sender.NoteSent(&sent)
}

// write writes and syncs the message in the recipient's tmp.
func (o *Outcome) write() error {
	if o.to.err != nil {
		return o.to.err
	}
	err := o.to.box.noteSuperseded(o.post.Message)
	if err == nil {
		o.temp = "tmp/" + string(o.post.Message.ID) + "." + string(wire.NewID())
		err = o.to.inbox.Create(o.temp, o.data)
	}
	if absent(err) { // the mailbox was retired a moment ago
		return o.to.box.noAgent()
	}
	return err
}

// publish has the message in the mailbox, and says whether it was there before. The temp file goes in any case.
func (o *Outcome) publish(ctx context.Context) {
	isThere, err := o.moveToNew(ctx)
	if isThere || err != nil {
		o.to.inbox.Remove(o.temp)
	}
	if err != nil {
		o.Err = err
		return
	}
	o.Stored, o.Known = true, isThere
	isSamePost := func(other *Outcome) bool { return other.post == o.post }
	if i := slices.IndexFunc(o.to.stored, isSamePost); i >= 0 && o.Box.host != "" {
		o.Known = o.to.stored[i].Known // the members of a host share an outbox
	}
	o.to.stored = append(o.to.stored, o)
}

// moveToNew makes the message mail. Under an id that this call made nobody else delivers: a shared lock is enough. It
// is no link, because the sandbox in which Claude Code runs commands on macOS forbids links.
func (o *Outcome) moveToNew(ctx context.Context) (isThere bool, err error) {
	b, id := o.to.box, o.post.Message.ID
	mode := lockfile.Shared
	if o.post.Given {
		mode = lockfile.Exclusive
	}
	unlock, err := b.store.lock(ctx, b.lockName("inbox"), mode, b.Present)
	if err != nil {
		return false, err
	}
	defer unlock()
	if err := o.to.current(); err != nil {
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

// isDelivered reports whether a message lies in the mailbox. A file under its name that is no message, as a power cut may
// leave one, is set aside. The inbox's lock is held.
func (b *Box) isDelivered(id wire.ID) (bool, error) {
	for {
		p, isThere, err := b.locate(id)
		if !isThere || err != nil {
			return false, err
		}
		_, err = b.open(p, id, nil)
		bad, isBad := errors.AsType[*BadError](err)
		switch {
		case errors.Is(err, ErrNotFound): // it has moved meanwhile
		case err == nil || isBad && bad.Unreadable != nil:
			return true, nil
		case !isBad:
			return false, err
		case !b.setAsideBad(p, bad):
			return false, fmt.Errorf("%s is no message and cannot be set aside now", p.file(id))
		}
	}
}

// close makes what was moved to new survive a power cut, and lets go of the inbox.
func (t *target) close() {
	if len(t.stored) > 0 {
		if err := t.inbox.Sync("new"); err != nil {
			for _, o := range t.stored {
				o.Err = &NotDurableError{o.post.Message.ID, o.post.Given, err}
			}
		}
	}
	if t.inbox != nil {
		t.inbox.Close()
	}
}

// NoteSent notes a message in the index of what the mailbox's owner sent, and reports whether it, or a recipient of it,
// was missing there. The index is a convenience that doctor can rebuild: it is not synced.
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

// sideBySide calls f for all, 16 at a time: their syncs then share the disk's flushes.
func sideBySide[T any](all []T, f func(T)) {
	if len(all) == 1 {
		f(all[0]) // without the switch of threads, which a benchmark of single deliveries shows
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
