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

// source is one watched mailbox.
type source struct {
	w     *Watcher
	box   *mailbox.Box
	paths [5]string // the watched directories

	// Used by scan alone.
	hasScanned bool
	events     fs.FileInfo // the directory of the log that cursor reads; nil: none

	// Guarded by the watcher's lock.
	stale   int                   // how many hints since the last scan that a directory was replaced
	seen    map[wire.ID]time.Time // when a message was last seen in new
	pending []wire.ID             // seen, but not returned by Next yet
	cursor  *eventlog.Cursor      // nil until there is a log
	hasMore bool                  // the log may have more events
	mailbox problem
	log     problem
}

// problem is an error to report, once.
type problem struct {
	err  error  // not reported yet
	last string // what err said, so that a repetition is not reported
}

// set sets the error unless it repeats the last one; nil clears it.
func (p *problem) set(err error) {
	if err == nil {
		*p = problem{}
	} else if err.Error() != p.last {
		*p = problem{err, err.Error()}
	}
}

const (
	teamDir = iota // where mailboxes appear and disappear
	agentDir
	inboxDir
	newDir
	eventsDir
)

func newSource(w *Watcher, b *mailbox.Box) *source {
	path, inbox := b.Path(), filepath.Join(b.Path(), "inbox")
	paths := [...]string{teamDir: filepath.Dir(path), agentDir: path, inboxDir: inbox, newDir: filepath.Join(inbox, "new"), eventsDir: filepath.Join(path, "events")}
	return &source{w: w, box: b, paths: paths, seen: map[wire.ID]time.Time{}}
}

func (s *source) handle(e fsnotify.Event) {
	dir, name := filepath.Dir(e.Name), filepath.Base(e.Name)
	hasLeft := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	id, isJSON := strings.CutSuffix(name, ".json")
	switch {
	case slices.Contains(s.paths[:], e.Name):
		// The kernel stops watching a directory that is moved or removed, even if it is back by now.
		if hasLeft || e.Has(fsnotify.Create) {
			s.rewatch()
		}
	case hasLeft:
	case dir == s.paths[teamDir]:
		wake(s.w.scanAsked)
	case dir == s.paths[newDir] && isJSON && wire.IsID(id):
		s.change(func() { s.notice(wire.ID(id)) })
	case dir == s.paths[newDir], dir == s.paths[inboxDir]:
		wake(s.w.scanAsked)
	case dir == s.paths[eventsDir]:
		s.change(func() { s.hasMore = true })
	}
}

// change updates the guarded fields and wakes Next.
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

// rewatch asks for a scan that watches the directories and opens the log anew.
func (s *source) rewatch() {
	s.change(func() { s.stale++ })
	wake(s.w.scanAsked)
}

// scan watches the directories that exist, takes in dropped files, lists new, and has the log read. It reports whether
// a dropped file is not complete yet.
func (s *source) scan(ctx context.Context) (isWaiting bool) {
	s.w.mu.Lock()
	stale := s.stale
	s.w.mu.Unlock()
	for _, path := range s.paths { // parents first: they report what happens to the next one meanwhile
		s.w.watch(path, stale > 0)
	}
	in, _ := s.box.Ingest(ctx) // a file that fails stays for the next scan
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
	if !s.hasScanned { // what was there at Open comes before what has arrived since
		unread = append(unread, s.pending...)
		s.pending, s.seen = nil, map[wire.ID]time.Time{}
	}
	for _, id := range unread {
		s.notice(id)
	}
	forget := time.Now().Add(-forgetAfter)
	maps.DeleteFunc(s.seen, func(_ wire.ID, last time.Time) bool { return last.Before(forget) })
}

// notice queues a message that was not seen before.
func (s *source) notice(id wire.ID) {
	if _, seen := s.seen[id]; !seen && s.w.opt.Messages {
		s.pending = append(s.pending, id)
	}
	s.seen[id] = time.Now()
}

// openLog opens the log, which may be another one than before. It continues after the last event that was returned if
// the log has that event, else it starts at the first one.
func (s *source) openLog() error {
	cursor, err := s.openCursor(s.box.Log())
	if err == nil {
		err = s.box.CheckPresent() // the mailbox may be gone by now
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
	case s.hasScanned: // there was no mailbox at Open
		after, err = log.SeqBefore(s.w.opened)
	default:
		after, err = log.LastSeq()
	}
	if err != nil || after == 0 {
		return log.Follow(0), err
	}
	// Read the last event before, by which openCursor recognises this log later.
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
		delete(s.seen, id) // report it if it is seen again
		var bad *mailbox.BadError
		if !errors.As(err, &bad) && !errors.Is(err, mailbox.ErrNotFound) && !errors.Is(err, mailbox.ErrNoAgent) {
			s.mailbox.set(err)
		}
	}
	return Entry{}, false
}

// nextEvent returns the next event of the log, then errors: an agent is reported gone after its last event. It returns
// nothing while another log may be in place.
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
