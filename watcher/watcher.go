// Package watcher says what is new in mailboxes: the messages that arrive and the events that are appended.
//
// A kernel's event is a hint; the directory is the truth. A directory is watched before
// it is listed, and listed again every few seconds.
//
// Messages come in the order in which the kernel told of them; those that a listing finds come by id. Every message
// that arrives after Open is an entry, once, even when another process has read it by then; but where the kernel's
// events are lost or refused, not one that came and left between two listings. A message that unread puts back is new
// an hour after it left. The events of an agent come by number, each once, with the gaps among them.
//
// A mailbox may be retired, removed, made again and restored: an entry says that the agent is gone. Its log goes on
// where it was left; another log in its place begins with its first event. What is dropped into the inbox is taken in,
// also while nobody calls Next.
package watcher

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

const (
	rescanEvery = 3 * time.Second
	pollEvery   = time.Second           // where events are refused, or a dropped file waits
	debounce    = 50 * time.Millisecond // between two scans that events ask for
	forgetAfter = time.Hour
)

// newNotifier fails in tests.
var newNotifier = fsnotify.NewWatcher

// Options say what a watcher tells of.
type Options struct {
	Messages bool // entries for messages
	Existing bool // with Messages: what is unread already comes first, by id
	Events   bool // entries for events

	// After says, for an agent, after which event its events begin (0: with the first that
	// is kept); otherwise they begin with those appended after Open.
	After map[wire.Address]uint64

	rescan, poll time.Duration // tests: other intervals
}

// Entry is one thing that is new: a message, an event, or an error.
type Entry struct {
	Agent wire.Name
	Box   *mailbox.Box

	Message *mailbox.Item // as it lay when Next was called; it may be further on
	Event   *wire.Event
	Gap     *eventlog.Gap // with Event: events that are missing before it
	Err     error         // what keeps the watcher from looking; mailbox.ErrNoAgent: the agent is gone for now
}

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("the watcher is closed")

// Watcher watches some mailboxes. Next is for one caller at a time; Close may be called by anybody at any time.
type Watcher struct {
	opt       Options
	opened    time.Time
	fs        *fsnotify.Watcher // nil: there are no events
	polls     atomic.Bool       // the kernel does not tell everything
	sources   []*source
	newEntry  chan struct{}   // there may be something for Next
	scanAsked chan struct{}   // a scan is asked for
	running   context.Context // until Close
	stop      context.CancelFunc
	wg        sync.WaitGroup

	mu   sync.Mutex
	turn int // which source is asked next
}

// Open begins to watch; agents without a mailbox too, an entry says so. The context is for Open alone.
func Open(ctx context.Context, boxes []*mailbox.Box, o Options) (*Watcher, error) {
	o.rescan, o.poll = cmp.Or(o.rescan, rescanEvery), cmp.Or(o.poll, pollEvery)
	w := &Watcher{opt: o, opened: time.Now(), newEntry: make(chan struct{}, 1), scanAsked: make(chan struct{}, 1)}
	w.running, w.stop = context.WithCancel(context.Background())
	var err error
	if w.fs, err = newNotifier(); err == nil {
		w.wg.Go(w.listen)
	}
	w.polls.Store(err != nil)
	for _, b := range boxes {
		w.sources = append(w.sources, newSource(w, b))
	}
	for _, s := range w.sources {
		w.watch(filepath.Dir(s.paths[agentDir]), false) // mailboxes come and go there
		s.scan(ctx)
		if !o.Existing {
			s.change(func() { s.pending = nil })
		}
	}
	w.wg.Go(w.run)
	return w, nil
}

// Next returns the next entry, and blocks until there is one, the context ends or the watcher is closed.
func (w *Watcher) Next(ctx context.Context) (Entry, error) {
	for {
		if w.running.Err() != nil {
			return Entry{}, ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return Entry{}, err
		}
		if e, ok := w.next(); ok {
			return e, nil
		}
		select {
		case <-w.newEntry:
		case <-w.running.Done():
		case <-ctx.Done():
		}
	}
}

// next asks the sources in turn.
func (w *Watcher) next() (Entry, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range w.sources {
		s := w.sources[w.turn]
		w.turn = (w.turn + 1) % len(w.sources)
		e, ok := s.nextMessage()
		if !ok {
			e, ok = s.nextEvent()
		}
		if ok {
			e.Agent, e.Box = s.box.Agent(), s.box
			return e, true
		}
	}
	return Entry{}, false
}

// listen takes in what the kernel tells, in a goroutine of its own: fsnotify may block
// a scan until its events are received.
func (w *Watcher) listen() {
	for {
		select {
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			for _, s := range w.sources {
				s.handle(e)
			}
		case err, ok := <-w.fs.Errors: // events were lost
			if !ok {
				return
			}
			w.pollAfter(err)
			for _, s := range w.sources {
				s.rewatch()
			}
		}
	}
}

func (w *Watcher) run() {
	pause := time.After(w.opt.poll) // Open may have met a file that was being written
	for {
		select {
		case <-pause:
		case <-w.scanAsked:
		case <-w.running.Done():
			return
		}
		every := w.opt.rescan
		for _, s := range w.sources {
			if s.scan(w.running) || w.polls.Load() {
				every = w.opt.poll
			}
		}
		pause = time.After(every)
		select {
		case <-time.After(debounce):
		case <-w.running.Done():
		}
	}
}

// watch asks for the events of the directory that is at a path now, also if it is watched: another one may be, and
// kqueue would go on with that. Where events are refused the watcher polls.
func (w *Watcher) watch(path string, isOther bool) {
	if w.fs == nil {
		return
	}
	if isOther {
		w.fs.Remove(path)
	}
	err := w.fs.Add(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fsnotify.ErrClosed) {
		w.polls.Store(true)
		w.pollAfter(err)
	}
}

// pollAfter does without events where there are no descriptors: kqueue takes one for
// every file, and rather no events than a process that can open nothing.
func (w *Watcher) pollAfter(err error) {
	if w.fs != nil && errors.Is(err, syscall.EMFILE) {
		w.polls.Store(true)
		w.fs.Close()
	}
}

// Close ends watching; a Next that waits returns ErrClosed.
func (w *Watcher) Close() (err error) {
	w.stop()
	if w.fs != nil {
		err = w.fs.Close()
	}
	w.wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sources {
		s.closeLog()
	}
	return err
}
