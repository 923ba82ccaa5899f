package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// Post is one message on its way to one or more mailboxes.
type Post struct {
	Message *wire.Message
	To      []*Box

	// Given says that the id was not made by this call: brought by the caller,
	// or derived. Then the message is looked for first, and one that is there
	// counts as delivered.
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

// NotDurableError says that a message was stored but could not be made to
// survive a power cut. Delivering again with the same id is the way on.
type NotDurableError struct {
	ID  wire.ID
	Err error
}

func (e *NotDurableError) Error() string {
	return fmt.Sprintf("stored, not known to survive a power cut (%v)", e.Err)
}
func (e *NotDurableError) Unwrap() error { return e.Err }

// Check says what is wrong with a message's content, before anything is
// written: text that is not UTF-8, a NUL, a size, or whatever would keep it from
// being read back.
//
// The error is a *ContentError.
func Check(m *wire.Message) error {
	_, err := encode(m)
	return err
}

// Deliver delivers posts, durably: when an Outcome has no error, the message
// survives a power cut. Killed at any point, each message is whole or absent
// at each recipient. A failure at one recipient undoes nothing elsewhere.
//
// Several recipients of one owner share one file; several posts share their
// syncs. Posts for the same mailbox appear in it in the order given.
func Deliver(ctx context.Context, posts ...*Post) {
	for len(posts) > maxJob {
		deliverSome(ctx, posts[:maxJob])
		posts = posts[maxJob:]
	}
	deliverSome(ctx, posts)
}

// maxJob is how many posts share their syncs at most: each holds a descriptor.
const maxJob = 256

func deliverSome(ctx context.Context, posts []*Post) {
	j := &job{ctx: ctx, posts: posts}
	defer j.close()
	j.write()
	j.sync()
	j.publish()
	j.index()
}

// ContentError says what about a message's content cannot be sent.
type ContentError struct{ Err error }

func (e *ContentError) Error() string { return e.Err.Error() }
func (e *ContentError) Unwrap() error { return e.Err }

func encode(m *wire.Message) ([]byte, error) {
	data, err := encodeChecked(m)
	if err != nil {
		return nil, &ContentError{err}
	}
	return data, nil
}

func encodeChecked(m *wire.Message) ([]byte, error) {
	for _, s := range []string{m.Body, m.Subject, m.Type, string(m.Meta), string(m.Payload)} {
		if !utf8.ValidString(s) {
			return nil, errors.New("the text is not UTF-8")
		}
		if strings.IndexByte(s, 0) >= 0 {
			return nil, errors.New("the text has a NUL")
		}
	}
	if !wire.IsID(string(m.ID)) {
		return nil, fmt.Errorf("%q is not an id", m.ID)
	}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	// Delivered and then set aside as bad, it would be lost.
	if !m.Plain() {
		if _, err := wire.Decode(data); err != nil {
			return nil, fmt.Errorf("no message: %w", err)
		}
	}
	return data, nil
}

// NoteSent notes a message in the index of what the mailbox's owner sent, and
// reports whether it missed there.
func (b *Box) NoteSent(m *wire.Message) bool { return b.noteSent(m, nil) }

func (b *Box) noteSent(m *wire.Message, d *draft) bool {
	sent, err := b.store.dir.Walk(string(b.agent), "sent", m.ID.Day())
	if atomicfile.Absent(err) {
		sent, err = b.store.makeBelow([]string{string(b.agent)}, []string{"sent", m.ID.Day()})
	}
	if err != nil {
		return false
	}
	defer sent.Close()
	name := string(m.ID) + ".json"
	if d != nil && d.Draft != nil && d.home.SameOwner(sent) && d.Link(sent, name) == nil {
		return true
	}
	if has, _ := sent.Has(name); has {
		return false
	}
	data, err := m.Encode()
	return err == nil && sent.Replace(name, data, false) == nil
}

// parallel calls f for 0 to n-1, several at a time when there are several:
// their syncs then share the disk's flushes.
func parallel(n int, f func(int)) {
	if n == 1 {
		f(0)
		return
	}
	workers := min(n, max(8, 2*runtime.GOMAXPROCS(0)))
	var wg sync.WaitGroup
	next := make(chan int)
	for range workers {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
