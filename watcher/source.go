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

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
	"github.com/fsnotify/fsnotify"
)

// source is one mailbox that is watched.
type source struct {
	w     *Watcher
	box   *mailbox.Box
	paths [4]string // of the directories that are watched

	// Used by scan alone.
	watched    [4]fs.FileInfo // what is watched at the paths; nil: nothing
	hasScanned bool
	isReplaced bool // something else is watched than before: the log may be another

	// Guarded by the watcher's lock.
	stale   int                   // how often it was asked to watch everything anew
	seen    map[wire.ID]time.Time // messages, and when they were last met in new
	pending []wire.ID             // seen, not returned
	cursor  *eventlog.Cursor      // nil until the log has been there
	hasMore bool                  // the log may have more
	errs    [2]error              // to be told: of the mailbox, and of its log
	lastErr [2]string             // the last of each that was
}

const (
	agentDir = iota
	inboxDir
	newDir
	eventsDir
)

const (
	mailboxErr = iota
	logErr
)

func newSource(w *Watcher, b *mailbox.Box, path string) *source {
	inbox := filepath.Join(path, "inbox")
	paths := [...]string{agentDir: path, inboxDir: inbox, newDir: filepath.Join(inbox, "new"), eventsDir: filepath.Join(path, "events")}
	return &source{w: w, box: b, paths: paths, seen: map[wire.ID]time.Time{}}
}

// handle takes in what the kernel told.
func (s *source) handle(e fsnotify.Event) {
	dir, name := filepath.Dir(e.Name), filepath.Base(e.Name)
	hasLeft := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	switch {
	case slices.Contains(s.paths[:], e.Name):
		// The kernel lets go of a directory that is moved or removed, even when it is
		// back by now.
		if hasLeft || e.Has(fsnotify.Create) {
			s.rewatch()
		}
	case hasLeft:
	case dir == s.paths[newDir]:
		if id, ok := strings.CutSuffix(name, ".json"); ok && wire.IsID(id) {
			s.update(s.w.newEntry, func() { s.notice(wire.ID(id)) })
		} else {
			wake(s.w.scanAsked)
		}
	case dir == s.paths[inboxDir]:
		wake(s.w.scanAsked)
	case dir == s.paths[eventsDir]:
		s.update(s.w.newEntry, func() { s.hasMore = true })
	}
}

// update changes what is guarded, and wakes whoever looks at it.
func (s *source) update(looks chan struct{}, change func()) {
	s.w.mu.Lock()
	change()
	s.w.mu.Unlock()
	wake(looks)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// rewatch asks for a scan that watches every directory anew.
func (s *source) rewatch() { s.update(s.w.scanAsked, func() { s.stale++ }) }

// scan looks at everything: it watches what is there, takes in what was dropped, lists
// new, and has the log read. It reports whether a dropped file is still being written.
func (s *source) scan(ctx context.Context) (isWaiting bool) {
	s.w.mu.Lock()
	stale := s.stale
	s.w.mu.Unlock()
	s.attach(stale > 0)
	unread, err := s.box.UnreadIDs()
	var in mailbox.TakenIn
	if err == nil {
		in, _ = s.box.TakeIn(ctx) // what cannot be taken in now stays where it is
	}
	s.update(s.w.newEntry, func() {
		if err == nil {
			for _, id := range append(unread, in.Messages...) {
				s.notice(id)
			}
			forget := time.Now().Add(-s.w.opt.forget)
			maps.DeleteFunc(s.seen, func(_ wire.ID, last time.Time) bool { return last.Before(forget) })
			err = s.openLog()
		}
		s.tell(mailboxErr, err)
		s.hasMore = s.hasMore || err == nil
		s.stale -= stale
		s.hasScanned = true
	})
	return in.Waiting > 0
}

// attach watches the directories that are at the paths now. Parents come first: they
// tell of what happens to the next while it is looked at.
func (s *source) attach(anew bool) {
	for i, path := range s.paths {
		old := s.watched[i]
		info, err := os.Lstat(path)
		isThere := err == nil && info.IsDir()
		if isThere && old != nil && !anew && os.SameFile(old, info) {
			continue
		}
		s.watched[i] = nil
		if old != nil && s.w.fs != nil {
			s.w.fs.Remove(path) // the kernel may have let go of it itself
		}
		if isThere {
			s.w.watch(path)
			s.watched[i], s.isReplaced = info, true
		}
	}
}

// notice queues a message unless it was seen.
func (s *source) notice(id wire.ID) {
	if !s.w.opt.Messages {
		return
	}
	if _, seen := s.seen[id]; !seen {
		s.pending = append(s.pending, id)
	}
	s.seen[id] = time.Now()
}

// openLog opens the log, or, where another may lie there now, that one.
func (s *source) openLog() error {
	if !s.isReplaced || !s.w.opt.Events {
		return nil
	}
	cursor, err := s.openCursor()
	if err != nil {
		return err
	}
	if err := s.box.Present(); err != nil { // it went meanwhile
		cursor.Close()
		return err
	}
	if s.cursor != nil {
		s.cursor.Close()
	}
	s.cursor, s.isReplaced = cursor, false
	return nil
}

// openCursor goes on after the last event that was returned, if the log has that one;
// another log begins with its first event.
func (s *source) openCursor() (*eventlog.Cursor, error) {
	log := s.box.Log()
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
			s.tell(mailboxErr, err)
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
		s.tell(logErr, err)
	}
	for of, err := range s.errs {
		if err != nil {
			s.errs[of] = nil
			return Entry{Err: err}, true
		}
	}
	return Entry{}, false
}

// tell has an error told, unless it was told; nil: it is over, and not told any more.
func (s *source) tell(of int, err error) {
	switch {
	case err == nil:
		s.errs[of], s.lastErr[of] = nil, ""
	case err.Error() != s.lastErr[of]:
		s.errs[of], s.lastErr[of] = err, err.Error()
	}
}
