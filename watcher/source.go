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

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

// source is one watched mailbox.
type source struct {
	w        *Watcher
	box      Mailbox
	paths    []string      // the watched directories, parents first
	dirs     []fs.FileInfo // what was there at the last scan
	new, log string        // two of the paths

	seen    map[wire.ID]time.Time // when a message was last seen in new
	pending []wire.ID             // seen, but not returned by Next yet
	cursor  *eventlog.Reader      // nil until there is a log
	after   time.Time             // events before are not new
	hasMore bool                  // the log may have more events

	err, logErr error  // why the mailbox or its log cannot be read now
	reported    string // the last of these that Next returned, which it does not repeat
}

func newSource(w *Watcher, b Mailbox) *source {
	path, inbox := b.Path(), filepath.Join(b.Path(), "inbox")
	s := &source{w: w, box: b, new: filepath.Join(inbox, "new"), log: filepath.Join(path, "events"), seen: map[wire.ID]time.Time{}}
	s.paths = []string{filepath.Dir(path), path, inbox, s.new, s.log}
	s.dirs = make([]fs.FileInfo, len(s.paths))
	return s
}

// handle notes what a kernel event says. Where only a listing can tell, it asks for a scan.
func (s *source) handle(e fsnotify.Event) {
	dir, name := filepath.Dir(e.Name), filepath.Base(e.Name)
	hasLeft := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	id, isJSON := strings.CutSuffix(name, ".json")
	switch {
	case slices.Contains(s.paths, e.Name):
		if hasLeft || e.Has(fsnotify.Create) {
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

// scan watches the directories that exist, takes in dropped files, lists new, and has the log read. It returns when a
// dropped file that is not settled yet can be looked at again, zero if there is none.
func (s *source) scan(ctx context.Context) (again time.Time) {
	for i, path := range s.paths { // a parent reports what happens to the next one meanwhile
		dir, _ := os.Lstat(path)
		s.w.watch(path, !os.SameFile(dir, s.dirs[i]))
		s.dirs[i] = dir
	}
	if box, isOurs := s.box.(*maildir.Box); isOurs {
		in, _ := drop.Ingest(ctx, box, 0) // a file that fails stays for the next time
		again = in.Again
	}
	unread, err := s.box.UnreadIDs()
	s.w.pollAfter(err)
	if err == nil {
		for _, id := range unread {
			s.notice(id)
		}
		maps.DeleteFunc(s.seen, func(_ wire.ID, last time.Time) bool { return time.Since(last) > forgetAfter })
		if s.w.opt.Events && s.cursor == nil {
			err = s.openLog()
		}
	}
	s.err = err
	s.hasMore = s.hasMore || err == nil
	if cmp.Or(s.err, s.logErr) == nil {
		s.reported = ""
	}
	return again
}

// notice queues a message that was not seen before.
func (s *source) notice(id wire.ID) {
	if _, seen := s.seen[id]; !seen && s.w.opt.Messages {
		s.pending = append(s.pending, id)
	}
	s.seen[id] = time.Now()
}

func (s *source) openLog() (err error) {
	after, isGiven := s.w.opt.After[s.box.Address()]
	if !isGiven && s.w.scanned.IsZero() {
		after, err = s.box.Log().LastSeq()
	} else if !isGiven { // there was no mailbox at Open
		s.after = s.w.opened
	}
	if err == nil {
		s.cursor = s.box.Log().Follow(after)
	}
	return err
}

// nextMessage returns the next message that can be read.
func (s *source) nextMessage() (Entry, bool) {
	for len(s.pending) > 0 {
		id := s.pending[0]
		s.pending = s.pending[1:]
		m, err := s.box.Message(id)
		if err == nil {
			return Entry{Message: m}, true
		}
		delete(s.seen, id) // report it if it is seen again
		s.w.askScan()      // it may not be due, and the listing knows when it is
		var bad *maildir.BadError
		if !errors.As(err, &bad) && !errors.Is(err, maildir.ErrNotFound) && !errors.Is(err, maildir.ErrNoMailbox) {
			s.err = err
		}
	}
	return Entry{}, false
}

// nextEvent returns the next event of the log, then errors: an agent is reported gone after its last event.
func (s *source) nextEvent() (Entry, bool) {
	for s.cursor != nil && s.hasMore {
		e, err := s.cursor.Next()
		if err == nil && e.At.Before(s.after) {
			continue
		}
		// After the first new event all are new, whatever the clock said.
		if s.after = (time.Time{}); err == nil {
			return Entry{Event: &e}, true
		}
		s.hasMore = false
		if s.logErr = err; err == io.EOF || errors.Is(err, maildir.ErrNoMailbox) {
			s.logErr = nil
		}
	}
	if err := cmp.Or(s.err, s.logErr); err != nil && err.Error() != s.reported {
		s.reported = err.Error()
		return Entry{Err: err}, true
	}
	return Entry{}, false
}
