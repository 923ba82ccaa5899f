package mailbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Post is one message on its way to one or more mailboxes.
type Post struct {
	Message *wire.Message
	To      []*Box

	// Given says that the id was not made by this call: brought by the caller, or
	// derived. Then the message is looked for first, and one that is there counts as
	// delivered.
	Given bool

	// Sender's mailbox, for its index of sent mail; nil when it has none.
	Sender *Box

	Outcomes []Outcome // one a recipient, filled in by Deliver
}

// Outcome is what became of a post at one recipient.
type Outcome struct {
	Box    *Box
	Stored bool // the message is in the mailbox, whatever Err says
	Known  bool // it was there before
	Err    error
}

// NotDurableError says that a message was stored but could not be made to survive a
// power cut. Delivering again with the same id is the way on.
type NotDurableError struct {
	ID  wire.ID
	Err error
}

func (e *NotDurableError) Error() string {
	return fmt.Sprintf("stored, not known to survive a power cut (%v)", e.Err)
}
func (e *NotDurableError) Unwrap() error { return e.Err }

// ContentError says what about a message's content cannot be sent.
type ContentError struct{ Err error }

func (e *ContentError) Error() string { return e.Err.Error() }
func (e *ContentError) Unwrap() error { return e.Err }

// Check says what is wrong with a message's content, before anything is written: text
// that is not UTF-8, a NUL, a size, or whatever would keep it from being read back.
// The error is a *ContentError.
func Check(m *wire.Message) error {
	_, err := encode(m)
	return err
}

func encode(m *wire.Message) ([]byte, error) {
	for _, s := range []string{m.Body, m.Subject, m.Type, string(m.Meta), string(m.Payload)} {
		if !utf8.ValidString(s) {
			return nil, &ContentError{errors.New("the text is not UTF-8")}
		}
		if strings.Contains(s, "\x00") {
			return nil, &ContentError{errors.New("the text has a NUL")}
		}
	}
	data, err := m.Encode()
	if err != nil {
		return nil, &ContentError{err}
	}
	// Delivered and then set aside as bad, it would be lost.
	if _, err := wire.Decode(data); err != nil {
		return nil, &ContentError{fmt.Errorf("no message: %w", err)}
	}
	return data, nil
}

// syncs is how many files and directories are written out at once: their syncs then
// share the disk's flushes.
const syncs = 16

// delivery is a message on its way to one mailbox.
type delivery struct {
	post *Post
	to   *Outcome
	data []byte
	temp string // the file that is linked into new
}

// Deliver delivers posts, durably: when an Outcome has no error, the message survives
// a power cut. Killed at any point, each message is whole or absent at each recipient.
// A failure at one recipient undoes nothing elsewhere.
//
// All files are written and synced side by side; then each is linked into its mailbox
// under that mailbox's lock; then each mailbox's directory is synced once.
func Deliver(ctx context.Context, posts ...*Post) {
	var all []*delivery
	for _, p := range posts {
		data, err := encode(p.Message)
		p.Outcomes = make([]Outcome, len(p.To))
		for i, b := range p.To {
			o := &p.Outcomes[i]
			o.Box, o.Err = b, err
			if err == nil {
				all = append(all, &delivery{post: p, to: o, data: data})
			}
		}
	}
	sideBySide(len(all), func(i int) { all[i].to.Err = all[i].write() })
	type mailbox struct {
		store *Store
		agent wire.Name
	}
	stored := map[mailbox][]*delivery{}
	var order []mailbox
	for _, d := range all {
		if d.to.Err == nil {
			d.to.Stored, d.to.Known, d.to.Err = d.publish(ctx)
		}
		if d.to.Stored {
			at := mailbox{d.to.Box.store, d.to.Box.agent}
			if stored[at] == nil {
				order = append(order, at)
			}
			stored[at] = append(stored[at], d)
		}
	}
	sideBySide(len(order), func(i int) {
		some := stored[order[i]]
		if err := order[i].store.root.Sync(some[0].to.Box.unread().dir); err != nil {
			for _, d := range some {
				d.to.Err = &NotDurableError{d.post.Message.ID, err}
			}
		}
	})
	for _, p := range posts {
		for _, o := range p.Outcomes {
			if o.Stored && p.Sender != nil {
				p.Sender.NoteSent(p.Message)
				break
			}
		}
	}
}

// write writes and syncs the message in the recipient's tmp.
func (d *delivery) write() error {
	b := d.to.Box
	root := b.store.root
	tmp := b.in("inbox/tmp")
	if err := b.Present(); err != nil {
		return err
	}
	if !root.OwnerCanRead(tmp) {
		return ErrUnreadable
	}
	temp := tmp + "/" + string(d.post.Message.ID) + "." + string(wire.NewID())
	err := root.Create(temp, d.data)
	if absent(err) {
		if err = b.mkdir(tmp); err == nil {
			err = root.Create(temp, d.data)
		}
	}
	if absent(err) { // retired a moment ago
		return fmt.Errorf("%s: %w", b.Address(), ErrNoAgent)
	}
	if err != nil {
		return err
	}
	d.temp = temp
	return nil
}

// publish links the message into new, unless it is known. The temp file goes in any
// case.
func (d *delivery) publish(ctx context.Context) (stored, known bool, err error) {
	b, id := d.to.Box, d.post.Message.ID
	defer b.store.root.Remove(d.temp)
	mode := lockfile.Shared
	if d.post.Given {
		mode = lockfile.Exclusive
	}
	err = b.locked(ctx, "inbox", mode, func() error {
		if d.post.Given {
			if _, known, err = b.locate(id); known || err != nil {
				return err
			}
		}
		err := b.store.root.Link(d.temp, b.unread().file(id))
		if errors.Is(err, fs.ErrExist) {
			known = true
			return nil
		}
		return err
	})
	return err == nil, known, err
}

// NoteSent notes a message in the index of what the mailbox's owner sent, and reports
// whether it was missing there. The index is a convenience that doctor can rebuild: it
// is not synced, and a failure is nobody's.
func (b *Box) NoteSent(m *wire.Message) bool {
	dir := b.in("sent", m.ID.Day())
	if b.mkdir(dir) != nil {
		return false
	}
	name := dir + "/" + fileOf(m.ID)
	if _, err := b.Sent(m.ID); !errors.Is(err, ErrNotFound) {
		return false
	}
	data, err := m.Encode()
	return err == nil && b.store.root.Replace(name, data, false) == nil
}

// sideBySide calls f for 0 to n-1, several at a time.
func sideBySide(n int, f func(int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	running := make(chan struct{}, syncs)
	for i := range n {
		running <- struct{}{}
		wg.Go(func() {
			f(i)
			<-running
		})
	}
	wg.Wait()
}
