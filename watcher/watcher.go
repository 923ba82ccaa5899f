// Package watcher says, in order, what is new in mailboxes: the messages that
// arrive and the events that are appended.
//
// The kernel's events are hints; the directory is the truth. A watch is set
// before the directory is looked at, and the directory is looked at again when
// hints were lost, and from time to time in any case.
//
// # Order
//
// The messages of an agent come in the order in which they were noticed, which
// is the order of arrival as the kernel told it; those found together by
// listing the directory come by id. The events of an agent come by sequence
// number, each once, across segments, and a gap among them is said. Between
// agents, and between an agent's messages and its events, there is no promise.
//
// # What is never missed
//
// Open first, then look, then call Next. What is in the mailbox when Open
// returns is seen by a look after it (or, with Existing, comes first); a
// message that arrives later is an entry, at the latest one Rescan after
// (Poll, while polling; both are stretched so that listing a very large
// directory takes at most a tenth of the time; and a network file system may
// hold its news back). A message that somebody else
// has read before we looked is an entry too, and its State says where it lies
// by now. One exception: when hints were lost (the kernel's queue ran over,
// the mailbox was moved away and back, or the watcher polls), a message that
// arrived and left new before the directory was listed is not an entry.
//
// A mailbox may be retired, removed, made again and restored: the watcher says
// that the agent is gone, goes on, and takes what it finds in the directory
// that comes back for new unless it has seen it.
//
// # What is never repeated, and what may be
//
// A watcher returns each message once, also when it is put back into new by
// unread. One that lay elsewhere when Open listed new, and is put back later,
// is new to this watcher. Another watcher begins anew. An event log that was
// replaced by another begins at its first event. An error is told once, and
// again after it was gone in between.
//
// A file under a message's name that is no whole message is no entry until it
// is one: it is tried again for as long as it lies there, ever more rarely. Who
// reads the mailbox sets it aside.
//
// # Dropped files
//
// A watcher looks at the inbox, so it takes in what is dropped there, also
// while nobody calls Next, and whatever it was asked to watch for.
//
// # Memory
//
// Sixteen bytes, and the map around them, for every message seen or waiting
// to be returned; a message is read when Next returns it, once. Hints are
// bounded: too many are replaced by a listing.
//
// # Goroutines
//
// One that takes in dropped files, since that may mean copying a large one. Every
// second it also hears the kernel if nobody waits in Next, so that a slow consumer
// makes no queue run over. (Elsewhere than on Linux two more hear the kernel, one
// of them fsnotify's.) Everything else happens inside Next. Close ends them and
// waits for them.
package watcher

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Options say what a watcher tells of.
type Options struct {
	Messages bool // entries for messages
	Existing bool // with Messages: what is unread already comes first, by id
	Events   bool // entries for events

	// After says, for an agent, after which sequence number its events begin
	// (0: with the first that is kept). For an agent that is absent here they
	// begin with those appended after Open.
	After map[wire.Address]uint64

	Rescan    time.Duration // how often the directories are looked at without a hint; 0: 3 s
	Poll      time.Duration // the same where hints cannot be relied on; 0: 500 ms
	ForcePoll bool          // no hints at all: for tests, and file systems known to have none

	fault func(op, path string) error // tests: the outcome of "new" and "add"
}

// Entry is one thing that is new: a message, an event, or an error.
type Entry struct {
	Agent wire.Name
	Box   *mailbox.Box

	// Message is a message that arrived. Its State and Where say where it lay
	// when it was read; it may be on its way further on.
	Message *mailbox.Item

	Event *wire.Event
	Gap   *mailbox.Gap // with Event: events that are missing before it

	// Err says what keeps the watcher from looking; it goes on trying.
	// mailbox.ErrNoAgent: the agent is gone, and may come back.
	Err error
}

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("the watcher is closed")

// Watcher watches some mailboxes. Next is for one caller at a time; Polling
// and Close may be called by anybody at any time.
type Watcher struct {
	opt     Options
	hints   *hints
	drops   *drops
	kernel  *kernel // nil when there is none
	polling atomic.Pointer[string]

	done chan struct{} // closed by Close
	stop context.CancelFunc
	once sync.Once
	wg   sync.WaitGroup

	mu    sync.Mutex // held by Next; guards what follows
	feeds []*feed
	news  []news
	turn  int       // the feed that is asked next
	next  time.Time // of looking without a hint
	timer *time.Timer

	wakes     <-chan struct{} // the end of a context, which ends a wait
	stopWaker func() bool

	opened time.Time
	heard  map[string]bool // the paths watched, while attending; nil: not asked yet
}

// Open begins to watch. An agent without a mailbox is no error here: an entry
// says so, and when it comes into being it is watched. The context is for Open
// alone.
func Open(ctx context.Context, boxes []*mailbox.Box, o Options) (*Watcher, error) {
	if o.Rescan <= 0 {
		o.Rescan = 3 * time.Second
	}
	if o.Poll <= 0 {
		o.Poll = 500 * time.Millisecond
	}
	w := &Watcher{opt: o, done: make(chan struct{}), news: make([]news, len(boxes)), opened: time.Now(), timer: time.NewTimer(time.Hour)}
	w.drops = newDrops(boxes, w.every)
	w.hints = newHints(len(boxes), w.drops)
	w.drops.taken = w.hints.taken
	w.drops.drain = func() {
		if w.kernel != nil {
			w.kernel.drain(w.ear())
		}
	}
	stores := map[string]bool{}
	for i, b := range boxes {
		path, err := filepath.Abs(b.Path())
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", b.Address(), err)
		}
		f := newFeed(w, i, b, path)
		w.feeds = append(w.feeds, f)
		for at, s := range f.spots {
			if s.path != "" {
				w.hints.listen(s.path, target{i, spotKind(at), ""})
			}
		}
		w.hints.listen(filepath.Dir(path), target{i, spotTeam, filepath.Base(path)})
		stores[filepath.Dir(path)] = true
	}
	w.listen(stores)
	var running context.Context
	running, w.stop = context.WithCancel(context.Background())
	for _, f := range w.feeds {
		if err := f.open(ctx); err != nil {
			w.Close()
			return nil, fmt.Errorf("watch %s: %w", f.box.Address(), err)
		}
	}
	w.next = time.Now().Add(w.every())
	w.wg.Go(func() { w.drops.run(running) })
	return w, nil
}

// Next returns the next entry, and blocks until there is one, the context ends
// or the watcher is closed.
func (w *Watcher) Next(ctx context.Context) (Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for heard := false; ; {
		select {
		case <-w.done:
			return Entry{}, ErrClosed
		default:
		}
		if err := ctx.Err(); err != nil {
			return Entry{}, err
		}
		if w.kernel != nil && !heard {
			// What is not told yet may be that a log is another one than that
			// which is read next.
			w.kernel.drain(w.ear())
		}
		again := w.attend(time.Now())
		if e, ok := w.pop(); ok {
			return e, nil
		}
		if heard = w.restless(); !heard {
			heard = w.wait(ctx, again)
		}
	}
}

func (w *Watcher) forgetWaker() {
	if w.stopWaker != nil {
		w.stopWaker()
	}
	w.wakes, w.stopWaker = nil, nil
}

// wait waits until there may be something new, and reports whether the kernel was
// heard.
func (w *Watcher) wait(ctx context.Context, until time.Time) (heard bool) {
	if w.kernel != nil {
		if end := ctx.Done(); end != w.wakes {
			// Kept for the next call, which mostly has the same context.
			w.forgetWaker()
			w.wakes, w.stopWaker = end, context.AfterFunc(ctx, w.kernel.wake)
		}
		if w.kernel.wait(until, w.ear()) {
			return true
		}
	}
	w.timer.Reset(time.Until(until))
	select {
	case <-w.hints.wake:
	case <-w.timer.C:
	case <-ctx.Done():
	case <-w.done:
	}
	return false
}

// attend hears what the kernel told, looks where that or the time asks for it,
// and says when to look again at the latest.
func (w *Watcher) attend(now time.Time) time.Time {
	if w.hints.take(w.news) {
		for i, f := range w.feeds {
			f.hear(&w.news[i])
		}
	}
	every := w.every()
	if w.next.After(now.Add(every)) { // polling has begun
		w.next = now.Add(every)
	}
	tick := !now.Before(w.next)
	if tick {
		w.next = now.Add(every)
	}
	again := w.next
	for _, f := range w.feeds {
		f.look(now, tick)
		if !f.retryAt.IsZero() && f.retryAt.Before(again) {
			again = f.retryAt
		}
	}
	w.heard = nil
	return again
}

// pop returns what is next, asking the agents in turn.
func (w *Watcher) pop() (Entry, bool) {
	for range w.feeds {
		f := w.feeds[w.turn]
		w.turn = (w.turn + 1) % len(w.feeds)
		if e, ok := f.pop(); ok {
			e.Agent, e.Box = f.box.Agent(), f.box
			return e, true
		}
	}
	return Entry{}, false
}

// restless reports whether asking for entries has shown that a directory must
// be looked at before waiting.
func (w *Watcher) restless() bool {
	for _, f := range w.feeds {
		if f.check || f.relist && f.view != nil {
			return true
		}
	}
	return false
}

func (w *Watcher) every() time.Duration {
	if w.polling.Load() != nil {
		return w.opt.Poll
	}
	return w.opt.Rescan
}

// Polling says in words why the watcher polls, "" while it relies on the
// kernel's events. It may begin to poll at any time, and then stays so.
func (w *Watcher) Polling() string {
	if why := w.polling.Load(); why != nil {
		return *why
	}
	return ""
}

// Probe says whether a watcher of what lies at path would poll, and why: the
// kind of a file system that others than this kernel may change, or what the
// kernel refuses. Both are "" where its events can be relied on. It changes
// nothing.
func Probe(path string) (remote, refused string) {
	remote = foreignFS(path)
	k, err := newKernel()
	if err == nil {
		err = k.Add(path)
		k.Close()
	}
	if err != nil {
		refused = err.Error()
	}
	return remote, refused
}

func (w *Watcher) poll(why string) { w.polling.CompareAndSwap(nil, &why) }

// Close ends watching; a Next that waits returns ErrClosed. It waits for the
// watcher's goroutines, and so for a dropped file that is being taken in.
func (w *Watcher) Close() error {
	var err error
	w.once.Do(func() {
		close(w.done)
		if w.stop != nil {
			w.stop()
		}
		if w.kernel != nil {
			err = w.kernel.Close()
		}
		w.wg.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.timer.Stop()
		w.forgetWaker()
		for _, f := range w.feeds {
			f.close()
		}
	})
	return err
}
