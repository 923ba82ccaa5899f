// Package watcher reports what is new in mailboxes: messages that arrive and events that are appended.
//
// A kernel event is a hint; the directory is the truth. A directory is watched, then listed, and listed again every few
// seconds.
//
// Messages come in the order of the kernel's events; those found by a listing come in the order of their IDs. Each
// message that arrives after Open is reported once, even if another process has read it meanwhile. Only without kernel
// events (refused or lost), and on macOS, whose events do not name what has come, is a message missed that came and
// went between two listings. A message put back with MarkUnread is reported again if it left the inbox more than an
// hour before. An agent's events come in sequence, each once.
//
// If a mailbox is retired or removed, an entry says that the agent is gone. If it comes back, its log continues after
// the last reported event; a new log in its place starts at its first event. Files dropped into an inbox become
// messages while Next is called.
package watcher

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

const (
	rescanEvery = 3 * time.Second
	pollEvery   = time.Second           // without kernel events
	debounce    = 50 * time.Millisecond // between two scans
	forgetAfter = time.Hour             // after a message left the inbox
)

// Options say what a watcher reports.
type Options struct {
	Messages bool
	Existing bool // with Messages: begin with the messages that are unread at Open
	Events   bool

	// After is the sequence number after which an agent's events begin (0: at the first one kept). An agent that is not
	// in it begins with the events appended after Open.
	After map[wire.Address]uint64

	// Mailboxes returns the mailboxes of a team, so that those which come later are watched too; nil: only those given to
	// Open. What is in them when they are found is new.
	Mailboxes func() ([]Mailbox, error)

	// Set in tests only.
	rescan, poll time.Duration
	openDirs     func() (*Dirs, error)
}

// Mailbox is a mailbox that can be watched: what mailbox.Mailbox.Watched returns. What is dropped there is taken in.
type Mailbox interface {
	Address() wire.Address
	Path() string
	UnreadIDs() ([]wire.ID, error)          // of those that are due
	Message(wire.ID) (*wire.Message, error) // wherever it is by now, if it is due
	Log() *eventlog.Log
}

// Entry is one message, event or error.
type Entry struct {
	Address wire.Address // of the mailbox; zero: of none

	Message *wire.Message
	Event   *wire.Event
	Err     error // why the watcher cannot look; mailbox.ErrNoMailbox: the agent is gone for now
}

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("the watcher is closed")

// Watcher watches some mailboxes. Next, which does all the work, is for one caller at a time; Close may be called at
// any time. Two goroutines receive the kernel's events.
type Watcher struct {
	opt     Options
	opened  time.Time
	running context.Context // ends at Close
	stop    context.CancelFunc
	store   *maildir.Store // of OpenTeam; else nil

	mu      sync.Mutex      // guards the following, and the sources; Next holds it
	dirs    *Dirs           // the directories of all sources; nil: no kernel events
	changed <-chan struct{} // see Dirs.Changed
	sources []*source       // more are appended if there are Options.Mailboxes
	turn    int             // index of the source that is asked first
	polls   bool            // some directories have no kernel events
	scanned time.Time       // the last scan; zero during Open
	scanAt  time.Time       // the next one
}

// Open begins to watch; a whole team's directory with OpenTeam, or teams.Team.Watch. An agent may have no mailbox yet: an entry
// says so. ctx ends Open, not the watcher.
func Open(ctx context.Context, boxes []Mailbox, o Options) *Watcher {
	o.rescan, o.poll = cmp.Or(o.rescan, rescanEvery), cmp.Or(o.poll, pollEvery)
	if o.openDirs == nil {
		o.openDirs = OpenDirs
	}
	w := &Watcher{opt: o, opened: time.Now()}
	w.running, w.stop = context.WithCancel(context.Background())
	var err error
	if w.dirs, err = o.openDirs(); err == nil {
		w.dirs.keeps, w.changed = true, w.dirs.Changed()
	}
	w.polls = err != nil
	var again []time.Time
	for _, b := range boxes {
		s := newSource(w, b)
		w.sources = append(w.sources, s)
		again = append(again, s.scan(ctx))
		if !o.Existing {
			s.pending = nil
		}
	}
	w.scanNext(again)
	return w
}

// OpenTeam begins to watch the mailboxes of some agents, or of all, in a team's directory such as .atm/main. Files that
// were dropped there become messages: it must be a directory that only people whom you trust can write to.
func OpenTeam(ctx context.Context, dir string, o Options, agents ...wire.Name) (*Watcher, error) {
	if dir == "" {
		return nil, errors.New("watch a team: the directory has no name")
	}
	dir, err := filepath.Abs(dir) // for the team's name
	if err != nil {
		return nil, err
	}
	root, err := durable.Open(dir)
	if err != nil {
		return nil, err
	}
	store := maildir.NewStore(root, wire.Name(filepath.Base(dir)))
	of := func(agents []wire.Name) (boxes []Mailbox) {
		for _, a := range agents {
			boxes = append(boxes, store.Box(a))
		}
		return boxes
	}
	if len(agents) == 0 {
		agents, err = store.Agents()
		o.Mailboxes = func() ([]Mailbox, error) {
			now, err := store.Agents()
			return of(now), err
		}
	}
	if err != nil {
		store.Close()
		return nil, err
	}
	w := Open(ctx, of(agents), o)
	w.store = store
	return w, nil
}

// Next waits for the next entry. It returns an error when ctx ends, and ErrClosed after Close.
func (w *Watcher) Next(ctx context.Context) (Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.running.Err() == nil && ctx.Err() == nil {
		w.handleEvents()
		if !time.Now().Before(w.scanAt) {
			w.scan(ctx)
		}
		if e, ok := w.entry(); ok {
			return e, nil
		}
		select {
		case <-w.changed:
		case <-time.After(time.Until(w.scanAt)):
		case <-w.running.Done():
		case <-ctx.Done():
		}
	}
	if w.running.Err() != nil {
		return Entry{}, ErrClosed
	}
	return Entry{}, ctx.Err()
}

// tick is how long Until waits for an entry. Then it looks for what no event reports: a killed runner, an expired
// lease, another host's state.
const tick = 750 * time.Millisecond

// Until opens a watcher and calls look until it is done or fails: once with an empty entry, as soon as nothing can be
// missed any more; then with each entry; and at each tick without one, with an entry that has Err alone. When ctx ends,
// Until returns its cause.
func Until(ctx context.Context, boxes []Mailbox, o Options, look func(Entry) (done bool, err error)) error {
	w := Open(ctx, boxes, o)
	defer w.Close()
	var e Entry
	for {
		if done, err := look(e); done || err != nil {
			return err
		}
		tickCtx, stop := context.WithTimeout(ctx, tick)
		var err error
		e, err = w.Next(tickCtx)
		stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			e.Err = err
		}
	}
}

func (w *Watcher) handleEvents() {
	if w.dirs == nil {
		return
	}
	events, lost := w.dirs.take()
	for _, e := range events {
		for _, s := range w.sources {
			s.handle(e)
		}
	}
	if lost != nil {
		w.pollAfter(lost)
		w.askScan()
	}
}

// entry returns an entry of the sources, which are asked in turn, so that a busy one does not hide the others.
func (w *Watcher) entry() (Entry, bool) {
	for range w.sources {
		s := w.sources[w.turn]
		w.turn = (w.turn + 1) % len(w.sources)
		e, ok := s.nextMessage()
		if !ok {
			e, ok = s.nextEvent()
		}
		if ok {
			e.Address = s.box.Address()
			return e, true
		}
	}
	return Entry{}, false
}

func (w *Watcher) askScan() {
	if soon := w.scanned.Add(debounce); soon.Before(w.scanAt) {
		w.scanAt = soon
	}
}

func (w *Watcher) scan(ctx context.Context) {
	w.addBoxes()
	var again []time.Time
	for _, s := range w.sources {
		again = append(again, s.scan(ctx))
	}
	w.scanNext(again)
}

// scanNext sets the time of the next scan, after one that says when dropped files can be looked at again.
func (w *Watcher) scanNext(again []time.Time) {
	every := w.opt.rescan
	if w.polls {
		every = w.opt.poll
	}
	w.scanned = time.Now()
	w.scanAt = w.scanned.Add(every)
	for _, at := range again {
		if !at.IsZero() && at.Before(w.scanAt) {
			w.scanAt = at
		}
	}
	if soon := w.scanned.Add(debounce); w.scanAt.Before(soon) {
		w.scanAt = soon
	}
	for _, s := range w.sources {
		if box, isOurs := s.box.(*maildir.Box); isOurs {
			if next := box.NextDue(); !next.IsZero() && next.Before(w.scanAt) {
				w.scanAt = next
			}
		}
	}
}

// addBoxes adds the mailboxes that have come since Open.
func (w *Watcher) addBoxes() {
	if w.opt.Mailboxes == nil {
		return
	}
	boxes, _ := w.opt.Mailboxes() // one that cannot be looked at now is found by the next scan
	for _, b := range boxes {
		if !slices.ContainsFunc(w.sources, func(s *source) bool { return s.box.Address() == b.Address() }) {
			w.sources = append(w.sources, newSource(w, b))
		}
	}
}

// watch asks for the kernel events of a directory; if they are refused, the watcher polls. isNew says that it is not
// the one that was at the path before, which kqueue would keep watching.
func (w *Watcher) watch(path string, isNew bool) {
	if w.dirs == nil {
		return
	}
	if isNew {
		w.dirs.fs.Remove(path)
	}
	if err := w.dirs.fs.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.polls = true
		w.pollAfter(err)
	}
}

// pollAfter gives up kernel events when the process runs out of file descriptors: kqueue needs one for every file.
func (w *Watcher) pollAfter(err error) {
	if w.dirs != nil && errors.Is(err, syscall.EMFILE) {
		w.polls = true
		w.dirs.Close()
		w.dirs, w.changed = nil, nil
	}
}

// Close stops the watcher and waits for Next, which returns ErrClosed.
func (w *Watcher) Close() (err error) {
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dirs != nil {
		err = w.dirs.Close()
	}
	for _, s := range w.sources {
		s.cursor.Close()
	}
	if w.store != nil {
		err = cmp.Or(err, w.store.Close())
		w.store = nil
	}
	return err
}
