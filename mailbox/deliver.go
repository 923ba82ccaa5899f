package mailbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
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

// draft is a file written for some recipients of a post.
type draft struct {
	*atomicfile.Draft
	home *atomicfile.Dir // whose rights it has
	err  error
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
	j := &job{ctx: ctx, drafts: map[*Post][]*draft{}}
	defer j.close()
	j.write(posts)
	j.sync()
	j.publish(posts)
}

type job struct {
	ctx    context.Context
	tmp    map[boxKey]*atomicfile.Dir
	drafts map[*Post][]*draft
	all    []*draft
}

type boxKey struct {
	store *Store
	agent wire.Name
}

func (b *Box) key() boxKey { return boxKey{b.store, b.agent} }

func (j *job) close() {
	for _, d := range j.all {
		if d.Draft != nil {
			d.Close()
		}
	}
	for _, t := range j.tmp {
		t.Close()
	}
}

// tmpOf is the recipient's tmp, opened once a job. Only for creating drafts:
// no lock is held, so nothing looked at here counts later.
func (j *job) tmpOf(b *Box) (*atomicfile.Dir, error) {
	if t := j.tmp[b.key()]; t != nil {
		return t, nil
	}
	t, err := b.store.dir.Walk(string(b.agent), "inbox", "tmp")
	if errors.Is(err, fs.ErrNotExist) {
		if err := b.seen(); err != nil {
			return nil, err
		}
		t, err = b.store.makeBelow([]string{string(b.agent), "inbox"}, []string{"tmp"})
	}
	if err != nil {
		return nil, b.absent(err)
	}
	if !t.Readable() {
		t.Close()
		return nil, ErrUnreadable
	}
	if j.tmp == nil {
		j.tmp = map[boxKey]*atomicfile.Dir{}
	}
	j.tmp[b.key()] = t
	return t, nil
}

// write writes a draft for every post and every owner among its recipients.
func (j *job) write(posts []*Post) {
	for _, p := range posts {
		p.Outcomes = make([]Outcome, len(p.To))
		j.drafts[p] = make([]*draft, len(p.To))
		data, err := encode(p.Message)
		for i, b := range p.To {
			o := &p.Outcomes[i]
			o.Box = b
			if o.Err = err; err != nil {
				continue
			}
			tmp, e := j.tmpOf(b)
			if e != nil {
				o.Err = e
				continue
			}
			j.drafts[p][i] = j.shared(p, tmp, data)
		}
	}
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
	if _, err := wire.Decode(data); err != nil {
		return nil, fmt.Errorf("no message: %w", err)
	}
	return data, nil
}

// shared is the post's draft for a recipient whose entries get tmp's owner: one
// that an earlier recipient has, or a new one.
func (j *job) shared(p *Post, tmp *atomicfile.Dir, data []byte) *draft {
	for _, d := range j.drafts[p] {
		if d != nil && d.err == nil && d.home.SameOwner(tmp) {
			return d
		}
	}
	d := &draft{home: tmp}
	j.all = append(j.all, d)
	d.Draft, d.err = tmp.Draft(fmt.Sprintf("%s.%d.%d", p.Message.ID, os.Getpid(), len(j.all)))
	if d.err == nil {
		_, d.err = d.Write(data)
	}
	return d
}

// sync makes all drafts durable, several at once.
func (j *job) sync() {
	todo := j.all[:0:0]
	for _, d := range j.all {
		if d.err == nil {
			todo = append(todo, d)
		}
	}
	if len(todo) > 1 {
		for _, d := range todo {
			d.Flush()
		}
	}
	parallel(len(todo), func(i int) { todo[i].err = todo[i].Sync() })
}

// publish links the drafts into place, a mailbox at a time under its lock, and
// then makes the directories durable, all at once.
func (j *job) publish(posts []*Post) {
	type item struct {
		post *Post
		at   int
	}
	var order []boxKey
	items := map[boxKey][]item{}
	for _, p := range posts {
		for i, b := range p.To {
			o := &p.Outcomes[i]
			if d := j.drafts[p][i]; o.Err == nil && d.err != nil {
				o.Err = d.err
			}
			if o.Err != nil {
				continue
			}
			if items[b.key()] == nil {
				order = append(order, b.key())
			}
			items[b.key()] = append(items[b.key()], item{p, i})
		}
	}
	rooms := make([]*room, len(order))
	for n, key := range order {
		list := items[key]
		box := key.store.Box(key.agent)
		mode := lockfile.Shared
		for _, it := range list {
			if it.post.Given {
				mode = lockfile.Exclusive
			}
		}
		unlock, err := box.lock(j.ctx, "inbox", mode)
		if err == nil {
			rooms[n], err = box.enter()
			for _, it := range list {
				if err == nil {
					j.link(rooms[n], it.post, it.at)
				}
			}
			unlock()
		}
		for _, it := range list {
			if o := &it.post.Outcomes[it.at]; err != nil {
				o.Err = err
			}
		}
	}
	synced := make([]error, len(order))
	parallel(len(order), func(n int) {
		if rooms[n] != nil {
			synced[n] = syncTogether(rooms[n].fresh)
		}
	})
	for n, key := range order {
		for _, it := range items[key] {
			if o := &it.post.Outcomes[it.at]; synced[n] != nil && o.Err == nil {
				o.Err = &NotDurableError{it.post.Message.ID, synced[n]}
			}
		}
		if rooms[n] != nil {
			rooms[n].close()
		}
	}
	for _, p := range posts {
		j.index(p)
	}
}

// link publishes one post in a mailbox whose inbox lock is held.
func (j *job) link(r *room, p *Post, at int) {
	o := &p.Outcomes[at]
	if p.Given {
		_, there, err := r.locate(p.Message.ID)
		if there || err != nil {
			o.Stored, o.Known, o.Err = there, there, err
			return
		}
	}
	name := string(p.Message.ID) + ".json"
	err := j.drafts[p][at].Link(r.fresh, name)
	if errors.Is(err, atomicfile.ErrNoLinks) {
		err = j.again(r, p, name)
	}
	if errors.Is(err, fs.ErrExist) {
		o.Known, err = true, nil
	}
	o.Stored, o.Err = err == nil, err
}

// again writes a file of its own for a recipient, where an earlier one has
// taken the file that all were to share.
func (j *job) again(r *room, p *Post, name string) error {
	data, err := p.Message.Encode()
	if err != nil {
		return err
	}
	tmp, err := r.dir("inbox/tmp", true)
	if err != nil {
		return err
	}
	d, err := tmp.Draft(fmt.Sprintf("%s.%d.%d", p.Message.ID, os.Getpid(), len(j.all)))
	if err != nil {
		return err
	}
	j.all = append(j.all, &draft{Draft: d, home: tmp})
	if _, err := d.Write(data); err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return err
	}
	return d.Link(r.fresh, name)
}

// index notes what was sent in the sender's own directory. It is a convenience
// that doctor can rebuild: not synced, and its failures are nobody's.
func (j *job) index(p *Post) {
	if p.Sender == nil {
		return
	}
	for i := range p.Outcomes {
		if p.Outcomes[i].Stored {
			p.Sender.noteSent(p.Message, j.drafts[p][i])
			return
		}
	}
}

// NoteSent notes a message in the index of what the mailbox's owner sent, and
// reports whether it missed there.
func (b *Box) NoteSent(m *wire.Message) bool { return b.noteSent(m, nil) }

func (b *Box) noteSent(m *wire.Message, d *draft) bool {
	agent, err := b.store.dir.Sub(string(b.agent))
	if err != nil {
		return false
	}
	defer agent.Close()
	sent, err := agent.Make("sent", m.ID.Day())
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
