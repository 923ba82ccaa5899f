package watcher

import (
	"cmp"
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
	w        *Watcher
	box      *mailbox.Box
	paths    []string // the watched directories, parents first
	new, log string   // two of them

	isStale bool                  // since the last scan a directory was replaced
	seen    map[wire.ID]time.Time // when a message was last seen in new
	pending []wire.ID             // seen, but not returned by Next yet
	cursor  *eventlog.Cursor      // nil until there is a log
	events  fs.FileInfo           // the directory of the log that cursor reads; nil: none
	hasMore bool                  // the log may have more events

	err, logErr error  // why the mailbox or its log cannot be read now
	reported    string // the last of these that Next returned, which it does not repeat
}

func newSource(w *Watcher, b *mailbox.Box) *source {
	path, inbox := b.Path(), filepath.Join(b.Path(), "inbox")
	s := &source{w: w, box: b, new: filepath.Join(inbox, "new"), log: filepath.Join(path, "events"), seen: map[wire.ID]time.Time{}}
	s.paths = []string{filepath.Dir(path), path, inbox, s.new, s.log}
	return s
}

// handle notes what a kernel event says. Where only a listing can tell, it asks for a scan.
func (s *source) handle(e fsnotify.Event) {
	dir, name := filepath.Dir(e.Name), filepath.Base(e.Name)
	hasLeft := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	id, isJSON := strings.CutSuffix(name, ".json")
	switch {
	case slices.Contains(s.paths, e.Name):
		// The kernel stops watching a directory that is moved or removed, even if it is back by now.
		if hasLeft || e.Has(fsnotify.Create) {
			s.isStale = true
			s.w.askScan()
		}
	case hasLeft:
	case dir == s.new && isJSON && wire.IsID(id):
		s.notice(wire.ID(id))
	case dir == s.log:
		s.hasMore = true
	case dir != s.box.Path() && slices.Contains(s.paths, dir):
		s.w.askScan()
	}
}

// scan watches the directories that exist, takes in dropped files, lists new, and has the log read. It reports whether
// a dropped file is not complete yet.
func (s *source) scan(ctx context.Context) (isWaiting bool) {
	for _, path := range s.paths { // a parent reports what happens to the next one meanwhile
		s.w.watch(path, s.isStale)
	}
	in, _ := s.box.Ingest(ctx) // a file that fails stays for the next scan
	unread, err := s.box.UnreadIDs()
	s.w.pollAfter(err)
	events, _ := os.Lstat(s.log)
	if err == nil {
		for _, id := range unread {
			s.notice(id)
		}
		maps.DeleteFunc(s.seen, func(_ wire.ID, last time.Time) bool { return time.Since(last) > forgetAfter })
		if s.w.opt.Events && (s.isStale || !os.SameFile(s.events, events)) {
			err = s.openLog()
		}
	}
	if s.events = events; err != nil {
		s.events = nil
	}
	s.err, s.isStale = err, false
	s.hasMore = s.hasMore || err == nil
	if cmp.Or(s.err, s.logErr) == nil {
		s.reported = ""
	}
	return in.Waiting > 0
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
	s.cursor.Close()
	s.cursor = cursor
	return nil
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
	case !s.w.scanned.IsZero(): // there was no mailbox at Open
		after, err = log.SeqBefore(s.w.opened)
	default:
		after, err = log.LastSeq()
	}
	if err != nil || after == 0 {
		return log.Follow(0), err
	}
	// Read the last event before, by which openCursor recognises this log later.
	c := log.Follow(after - 1)
	if e, _, _ := c.Next(); e.Seq != after {
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
			s.err = err
		}
	}
	return Entry{}, false
}

// nextEvent returns the next event of the log, then errors: an agent is reported gone after its last event. It returns
// nothing while another log may be in place.
func (s *source) nextEvent() (Entry, bool) {
	if s.isStale {
		return Entry{}, false
	}
	if s.cursor != nil && s.hasMore {
		e, gap, err := s.cursor.Next()
		if err == nil {
			return Entry{Event: &e, Gap: gap}, true
		}
		s.hasMore = false
		if s.logErr = err; err == io.EOF || errors.Is(err, mailbox.ErrNoAgent) {
			s.logErr = nil
		}
	}
	if err := cmp.Or(s.err, s.logErr); err != nil && err.Error() != s.reported {
		s.reported = err.Error()
		return Entry{Err: err}, true
	}
	return Entry{}, false
}
