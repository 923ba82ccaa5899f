package watcher

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

// source is one mailbox that is watched.
type source struct {
	w     *Watcher
	box   *mailbox.Box
	paths [4]string // of the directories that are watched

	// Used by scan alone.
	hasScanned bool
	events     fs.FileInfo // the directory of the log that cursor reads; nil: none

	// Guarded by the watcher's lock.
	stale   int                   // how often it was told that something else may lie at the paths
	seen    map[wire.ID]time.Time // messages, and when they were last met in new
	pending []wire.ID             // seen, not returned
	cursor  *eventlog.Cursor      // nil until the log has been there
	hasMore bool                  // the log may have more
	mailbox problem
	log     problem
}

// problem is an error to be told, once.
type problem struct {
	err  error
	last string // that was to be told
}

// set notes an error, unless it is the last again; nil: it is over.
func (p *problem) set(err error) {
	if err == nil {
		*p = problem{}
	} else if err.Error() != p.last {
		*p = problem{err, err.Error()}
	}
}

const (
	agentDir = iota
	inboxDir
	newDir
	eventsDir
)

func newSource(w *Watcher, b *mailbox.Box) *source {
	path, inbox := b.Path(), filepath.Join(b.Path(), "inbox")
	paths := [...]string{agentDir: path, inboxDir: inbox, newDir: filepath.Join(inbox, "new"), eventsDir: filepath.Join(path, "events")}
	return &source{w: w, box: b, paths: paths, seen: map[wire.ID]time.Time{}}
}

func (s *source) handle(e fsnotify.Event) {
	dir, name := filepath.Dir(e.Name), filepath.Base(e.Name)
	hasLeft := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	id, isJSON := strings.CutSuffix(name, ".json")
	switch {
	case slices.Contains(s.paths[:], e.Name):
		// The kernel lets go of a directory that is moved or removed, even when it is back by now.
		if hasLeft || e.Has(fsnotify.Create) {
			s.rewatch()
		}
	case hasLeft:
	case dir == s.paths[newDir] && isJSON && wire.IsID(id):
		s.change(func() { s.notice(wire.ID(id)) })
	case dir == s.paths[newDir], dir == s.paths[inboxDir]:
		wake(s.w.scanAsked)
	case dir == s.paths[eventsDir]:
		s.change(func() { s.hasMore = true })
	}
}

// change changes what is guarded, and wakes Next.
func (s *source) change(f func()) {
	s.w.mu.Lock()
	f()
	s.w.mu.Unlock()
	wake(s.w.newEntry)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// rewatch asks for a scan, and has the log opened anew.
func (s *source) rewatch() {
	s.change(func() { s.stale++ })
	wake(s.w.scanAsked)
}

// scan looks at everything: it watches what is there, takes in what was dropped, lists
// new, and has the log read. It reports whether a dropped file waits.
func (s *source) scan(ctx context.Context) (isWaiting bool) {
	s.w.mu.Lock()
	stale := s.stale
	s.w.mu.Unlock()
	for _, path := range s.paths { // parents come first: they tell of what happens to the next meanwhile
		s.w.watch(path, stale > 0)
	}
	in, _ := s.box.TakeIn(ctx) // what cannot be taken in now stays where it is
	unread, err := s.box.UnreadIDs()
	s.w.pollAfter(err)
	events, _ := os.Lstat(s.paths[eventsDir])
	s.change(func() {
		if err == nil {
			s.noticeAll(unread)
			if s.w.opt.Events && (stale > 0 || !os.SameFile(s.events, events)) {
				err = s.openLog()
			}
		}
		s.events = events
		if err != nil {
			s.events = nil
		}
		s.mailbox.set(err)
		s.hasMore = s.hasMore || err == nil
		s.stale -= stale
		s.hasScanned = true
	})
	return in.Waiting > 0
}

func (s *source) noticeAll(unread []wire.ID) {
	if !s.hasScanned { // what was there already goes before what the kernel told of meanwhile
		unread = append(unread, s.pending...)
		s.pending, s.seen = nil, map[wire.ID]time.Time{}
	}
	for _, id := range unread {
		s.notice(id)
	}
	forget := time.Now().Add(-forgetAfter)
	maps.DeleteFunc(s.seen, func(_ wire.ID, last time.Time) bool { return last.Before(forget) })
}

// notice queues a message unless it was seen.
func (s *source) notice(id wire.ID) {
	if _, seen := s.seen[id]; !seen && s.w.opt.Messages {
		s.pending = append(s.pending, id)
	}
	s.seen[id] = time.Now()
}

// openLog opens the log, or, where another may lie there now, that one: after the last
// event that was returned, if it has that, else from its first.
func (s *source) openLog() error {
	cursor, err := s.openCursor(s.box.Log())
	if err == nil {
		err = s.box.Present() // else it went meanwhile
	}
	if err != nil {
		cursor.Close()
		return err
	}
	s.closeLog()
	s.cursor = cursor
	return nil
}

func (s *source) closeLog() {
	if s.cursor != nil {
		s.cursor.Close()
	}
}

func (s *source) openCursor(log *eventlog.Log) (*eventlog.Cursor, error) {
	if s.cursor != nil {
		var last eventlog.Snapshot
		s.cursor.Mark(&last)
		if c, ok := log.Resume(last); ok {
			return c, nil
		}
		return log.Follow(0), nil
	}
	after, isGiven := s.w.opt.After[s.box.Address()]
	var err error
	switch {
	case isGiven:
	case s.hasScanned: // the mailbox was not there when Open looked
		after, err = log.SeqBefore(s.w.opened)
	default:
		after, err = log.LastSeq()
	}
	if err != nil || after == 0 {
		return log.Follow(0), err
	}
	// A log is known again by the last event that was read of it.
	c := log.Follow(after - 1)
	if e, _, err := c.Next(); err != nil || e.Seq != after {
		c.Close()
		c = log.Follow(after)
	}
	return c, nil
}

// nextMessage returns the next message that can be read.
func (s *source) nextMessage() (Entry, bool) {
	for len(s.pending) > 0 {
		id := s.pending[0]
		s.pending = s.pending[1:]
		it, err := s.box.Get(id)
		if err == nil {
			return Entry{Message: it}, true
		}
		delete(s.seen, id) // it is new when it is met again
		var bad *mailbox.BadError
		if !errors.As(err, &bad) && !errors.Is(err, mailbox.ErrNotFound) && !errors.Is(err, mailbox.ErrNoAgent) {
			s.mailbox.set(err)
		}
	}
	return Entry{}, false
}

// nextEvent returns the next event of the log, then errors: the agent is gone when all
// of its log is told. Nothing while another log may lie there.
func (s *source) nextEvent() (Entry, bool) {
	if s.stale > 0 {
		return Entry{}, false
	}
	if s.cursor != nil && s.hasMore {
		e, gap, err := s.cursor.Next()
		if err == nil {
			return Entry{Event: &e, Gap: gap}, true
		}
		s.hasMore = false
		if err == io.EOF || errors.Is(err, mailbox.ErrNoAgent) {
			err = nil
		}
		s.log.set(err)
	}
	for _, p := range []*problem{&s.mailbox, &s.log} {
		if err := p.err; err != nil {
			p.err = nil
			return Entry{Err: err}, true
		}
	}
	return Entry{}, false
}
