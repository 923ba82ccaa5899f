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
	watched [4]fs.FileInfo // what is watched at the paths; nil: nothing
	changed bool           // something else is watched than before: the log may be another

	// Guarded by the watcher's lock.
	asked   bool                  // a scan is asked for
	anew    int                   // how often it was asked to watch everything anew
	waiting bool                  // a dropped file is still being written
	scanned time.Time             // the last scan
	seen    map[wire.ID]time.Time // messages, and when they were last met in new
	pending []wire.ID             // seen, not returned
	cursor  *eventlog.Cursor      // nil until the log has been there
	more    bool                  // the log may have more
	others  []eventlog.Snapshot   // where logs were left that lay here before
	errs    []error               // to be told
	said    string                // the last error of the mailbox that was told
	logSaid string                // and of its log
}

const (
	agentDir = iota
	inboxDir
	newDir
	eventsDir
)

func newSource(w *Watcher, b *mailbox.Box, path string) *source {
	inbox := filepath.Join(path, "inbox")
	paths := [...]string{agentDir: path, inboxDir: inbox, newDir: filepath.Join(inbox, "new"), eventsDir: filepath.Join(path, "events")}
	return &source{w: w, box: b, paths: paths, seen: map[wire.ID]time.Time{}}
}

// handle takes in what the kernel told.
func (s *source) handle(e fsnotify.Event) {
	dir, name := filepath.Dir(e.Name), filepath.Base(e.Name)
	left := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	switch {
	case slices.Contains(s.paths[:], e.Name):
		// The kernel lets go of a directory that is moved or removed, even when it is
		// back by now.
		if left || e.Has(fsnotify.Create) {
			s.ask(1)
		}
	case left:
	case dir == s.paths[newDir]:
		if id, ok := strings.CutSuffix(name, ".json"); ok && wire.IsID(id) {
			s.update(s.w.news, func() { s.notice(wire.ID(id)) })
		} else {
			s.ask(0)
		}
	case dir == s.paths[inboxDir]:
		s.ask(0)
	case dir == s.paths[eventsDir]:
		s.update(s.w.news, func() { s.more = true })
	}
}

// update changes what is guarded, and wakes one of those who look at it.
func (s *source) update(wake chan struct{}, f func()) {
	s.w.mu.Lock()
	f()
	s.w.mu.Unlock()
	select {
	case wake <- struct{}{}:
	default:
	}
}

// ask asks for a scan; 1: which watches everything anew.
func (s *source) ask(anew int) {
	s.update(s.w.asked, func() { s.asked, s.anew = true, s.anew+anew })
}

// due is when the next scan is.
func (s *source) due() time.Time {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	switch {
	case s.asked:
		return s.scanned.Add(debounce)
	case s.waiting || s.w.polling != "":
		return s.scanned.Add(s.w.opt.poll)
	}
	return s.scanned.Add(s.w.opt.rescan)
}

// scan looks at everything: it watches what is there, takes in what was dropped, lists
// new, and has the log read.
func (s *source) scan(ctx context.Context) {
	s.w.mu.Lock()
	anew := s.anew
	s.asked = false
	s.w.mu.Unlock()
	s.attach(anew > 0)
	unread, _, err := s.box.UnreadIDs()
	var in mailbox.TakenIn
	if err == nil {
		in, _ = s.box.TakeIn(ctx) // what cannot be taken in now stays where it is
	}
	s.update(s.w.news, func() {
		now := time.Now()
		if err == nil {
			for _, id := range append(unread, in.Messages...) {
				s.notice(id)
			}
			maps.DeleteFunc(s.seen, func(_ wire.ID, last time.Time) bool { return now.Sub(last) > s.w.opt.forget })
			err = s.openLog()
		}
		s.say(&s.said, err)
		s.more = s.more || err == nil
		s.anew -= anew
		s.waiting, s.scanned = in.Waiting > 0, now
	})
}

// attach watches the directories that are at the paths now. Parents come first: they
// tell of what happens to the next while it is looked at.
func (s *source) attach(anew bool) {
	for i, path := range s.paths {
		was := s.watched[i]
		is, err := os.Lstat(path)
		there := err == nil && is.IsDir()
		if there && was != nil && !anew && os.SameFile(was, is) {
			continue
		}
		s.watched[i] = nil
		if was != nil && s.w.fs != nil {
			s.w.fs.Remove(path) // the kernel may have let go of it itself
		}
		if there {
			s.w.watch(path)
			s.watched[i], s.changed = is, true
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

// openLog opens the log, or, where another may lie there now, that one: after the last
// event that was returned of it, if any was.
func (s *source) openLog() (err error) {
	if !s.changed || !s.w.opt.Events {
		return nil
	}
	log := s.box.Log()
	if s.cursor == nil {
		after, given := s.w.opt.After[s.box.Address()]
		switch {
		case given:
		case s.scanned.IsZero():
			after, err = log.LastSeq()
		default: // the mailbox was not there when Open looked
			after, err = log.SeqBefore(s.w.opened)
		}
		if err == nil {
			s.cursor, s.changed = follow(log, after), false
		}
		return err
	}
	others := s.others
	var here eventlog.Snapshot
	if s.cursor.Mark(&here); here.CRC != 0 {
		others = append(others, here)
	}
	cursor := log.Follow(0)
	for i, left := range others {
		if c, ok := log.Resume(left); ok {
			cursor, others = c, slices.Delete(others, i, i+1)
			break
		}
	}
	if err := s.box.Present(); err != nil {
		return err // it went meanwhile
	}
	s.cursor.Close()
	s.cursor, s.others, s.changed = cursor, others, false
	return nil
}

// follow is a cursor on the events after a sequence number. It has met that event if it
// is there: by that the log is known again.
func follow(log *eventlog.Log, after uint64) *eventlog.Cursor {
	if after > 0 {
		c := log.Follow(after - 1)
		if e, _, err := c.Next(); err == nil && e.Seq == after {
			return c
		}
		c.Close()
	}
	return log.Follow(after)
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
			s.say(&s.said, err)
		}
	}
	return Entry{}, false
}

// nextEvent returns the next event of the log, then errors: the agent is gone when all
// of its log is told. Nothing while another log may lie there.
func (s *source) nextEvent() (Entry, bool) {
	if s.anew > 0 {
		return Entry{}, false
	}
	if s.cursor != nil && s.more {
		e, gap, err := s.cursor.Next()
		if err == nil {
			return Entry{Event: &e, Gap: gap}, true
		}
		s.more = false
		if err == io.EOF || errors.Is(err, mailbox.ErrNoAgent) {
			err = nil
		}
		s.say(&s.logSaid, err)
	}
	if len(s.errs) == 0 {
		return Entry{}, false
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return Entry{Err: err}, true
}

// say tells an error, unless it was told; nil: it is gone.
func (s *source) say(said *string, err error) {
	switch {
	case err == nil:
		*said = ""
	case err.Error() != *said:
		*said = err.Error()
		s.errs = append(s.errs, err)
	}
}
