package watcher

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// feed is what one mailbox has to say. All of it belongs to Next.
type feed struct {
	w     *Watcher
	index int
	box   *mailbox.Box
	spots [4]spot       // by spotKind; the path of one that is not watched is ""
	view  *mailbox.View // nil: the agent is not there

	seen    map[key]struct{}
	pending []key // noticed, not returned; from head on
	head    int
	torn    map[key]*retry // files under a message's name that could not be read
	retryAt time.Time      // when the first of them is due; zero: none
	gate    gate
	touched bool // since the last look: see news
	relist  bool // list new once nothing is pending
	stale   bool // list new at the next look
	check   bool // compare what is watched with what is there

	cursor *mailbox.Cursor // nil without Events
	log    spot            // the directory that the cursor reads
	left   []logAt         // logs read before, and how far
	after  time.Time       // events of before are none: the log was there, unseen, at Open
	more   bool            // the log may have more

	flip    bool // whether a message is due before an event
	errs    []error
	said    string // the last error told about the mailbox
	logSaid string // and about its log
}

type retry struct {
	due  time.Time
	wait time.Duration
	told bool
}

type logAt struct {
	log spot
	seq uint64
}

func newFeed(w *Watcher, index int, b *mailbox.Box, path string) *feed {
	f := &feed{w: w, index: index, box: b, seen: map[key]struct{}{}, torn: map[key]*retry{}}
	f.spots[spotAgent].path = path
	f.spots[spotInbox].path = filepath.Join(path, "inbox")
	f.spots[spotNew].path = filepath.Join(path, "inbox", "new")
	if w.opt.Events {
		f.spots[spotEvents].path = filepath.Join(path, "events")
	}
	return f
}

// open watches, then looks: what is in the mailbox is taken in, and is the
// baseline, or comes first.
func (f *feed) open(ctx context.Context) error {
	f.attach()
	if f.w.opt.Events {
		after, given := f.w.opt.After[f.box.Address()]
		if !given && f.view != nil {
			var err error
			if after, err = f.box.LastSeq(); err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
				return err
			}
		}
		if f.view == nil && !given {
			f.after = f.w.opened
		}
		f.cursor, f.log, f.more = f.box.Events(after), f.spots[spotEvents], given
	}
	if f.view == nil {
		return nil
	}
	var foreign []string
	if err := f.list(func(name string) { foreign = append(foreign, name) }); err != nil {
		return err
	}
	taken, _ := f.box.TakeInNamed(ctx, foreign...) // what cannot be taken in now stays where it is
	if taken.Waiting > 0 {
		for _, name := range foreign {
			f.w.drops.foreign(f.index, false, name)
		}
		f.w.drops.hint(f.index, false)
	}
	for _, id := range taken.Messages {
		f.notice(keyOf(id))
	}
	f.relist = false
	if f.w.opt.Existing {
		slices.SortFunc(f.pending, compare)
	} else {
		f.pending = nil
	}
	return nil
}

func compare(a, b key) int { return bytes.Compare(a[:], b[:]) }

func (f *feed) close() {
	if f.view != nil {
		f.view.Close()
	}
	if f.cursor != nil {
		f.cursor.Close()
	}
}

// hear takes over what the kernel told.
func (f *feed) hear(n *news) {
	for _, k := range n.ids {
		f.notice(k)
	}
	f.relist = f.relist || n.full
	f.touched = f.touched || n.touched
	f.check = f.check || n.check
	f.more = f.more || n.events
}

// notice queues a message unless it was seen.
func (f *feed) notice(k key) {
	if !f.w.opt.Messages {
		return
	}
	if _, seen := f.seen[k]; seen {
		return
	}
	if f.head > len(f.pending)/2 && len(f.pending) == cap(f.pending) {
		f.pending = append(f.pending[:0], f.pending[f.head:]...)
		f.head = 0
	}
	f.seen[k] = struct{}{}
	f.pending = append(f.pending, k)
}

// look looks at the directories, if a hint or the time asks for it.
func (f *feed) look(now time.Time, tick bool) {
	if tick || f.check {
		f.check = false
		f.attach()
	}
	if tick {
		f.more = true
	}
	if f.view == nil {
		f.relist = false // it is listed when it comes back
		return
	}
	if !f.retryAt.IsZero() && !now.Before(f.retryAt) {
		f.retry(now)
	}
	if tick {
		f.relist = f.relist || f.stale || f.gate.due(f.spots[spotNew].info.ModTime(), now, f.touched && f.w.Polling() == "")
		f.touched = false
	}
	if f.relist && f.head == len(f.pending) {
		f.relist = false
		if err := f.list(func(name string) { f.w.drops.foreign(f.index, false, name) }); err != nil {
			f.stale = true
			f.say(&f.said, err)
		}
	}
}

// list queues the messages in new that were not seen, by id.
func (f *feed) list(foreign func(string)) error {
	began := time.Now()
	from := len(f.pending)
	err := f.view.Unread(func(id wire.ID) {
		k := keyOf(id)
		if f.torn[k] == nil {
			f.notice(k)
		}
	}, foreign)
	slices.SortFunc(f.pending[from:], compare)
	if err == nil {
		f.stale, f.said = false, ""
		f.gate.listed(began, time.Now())
	}
	return err
}

// retry queues the files that could not be read and are due again.
func (f *feed) retry(now time.Time) {
	f.retryAt = time.Time{}
	for k, r := range f.torn {
		if !now.Before(r.due) {
			r.due = now.Add(r.wait)
			f.notice(k)
		}
		f.retryBy(r.due)
	}
}

func (f *feed) retryBy(due time.Time) {
	if f.retryAt.IsZero() || due.Before(f.retryAt) {
		f.retryAt = due
	}
}

// pop returns what is next in this mailbox.
func (f *feed) pop() (Entry, bool) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return Entry{Err: err}, true
	}
	f.flip = !f.flip
	if f.flip {
		if e, ok := f.message(); ok {
			return e, true
		}
		return f.event()
	}
	if e, ok := f.event(); ok {
		return e, true
	}
	return f.message()
}

// say tells an error unless it was the last one said.
func (f *feed) say(said *string, err error) {
	if text := err.Error(); text != *said {
		*said = text
		f.errs = append(f.errs, err)
	}
}

// message returns the next message that was noticed and can be read.
func (f *feed) message() (Entry, bool) {
	for f.view != nil && f.head < len(f.pending) {
		k := f.pending[f.head]
		if f.head++; f.head == len(f.pending) {
			f.pending, f.head = f.pending[:0], 0
			if cap(f.pending) > maxHints {
				f.pending = nil
			}
		}
		it, err := f.view.Get(k.id())
		if err == nil {
			delete(f.torn, k)
			return Entry{Message: it}, true
		}
		delete(f.seen, k)
		var bad *mailbox.BadError
		switch {
		case errors.Is(err, mailbox.ErrNotFound):
			delete(f.torn, k) // removed or set aside; if it comes again it is new
		case errors.Is(err, mailbox.ErrNoAgent):
			f.check, f.stale = true, true
		default:
			r := f.torn[k]
			if r == nil {
				r = &retry{wait: dropWait}
				f.torn[k] = r
			}
			r.due = time.Now().Add(r.wait)
			r.wait = min(2*r.wait, time.Minute)
			f.retryBy(r.due)
			if told := r.told; !told && !errors.As(err, &bad) {
				r.told = true
				return Entry{Err: err}, true
			}
		}
	}
	return Entry{}, false
}

// event returns the next event of the log.
func (f *feed) event() (Entry, bool) {
	for f.cursor != nil && f.more {
		e, gap, err := f.cursor.Next()
		if err == nil {
			f.logSaid = ""
			if e.At.Before(f.after) {
				continue
			}
			return Entry{Event: &e, Gap: gap}, true
		}
		if f.turnLog() {
			continue
		}
		f.more = false
		switch {
		case err == io.EOF:
		case errors.Is(err, mailbox.ErrNoAgent):
			f.check = f.check || f.view != nil
		default:
			f.say(&f.logSaid, err)
		}
	}
	return Entry{}, false
}

// turnLog goes on with the log that is there now, when the one that was read
// has been replaced.
func (f *feed) turnLog() bool {
	now := f.spots[spotEvents]
	if now.info == nil || now.same(f.log) {
		return false
	}
	old := f.log
	f.log = now
	if old.info == nil {
		return false // there was none before; the cursor finds it by its path
	}
	f.left = slices.DeleteFunc(f.left, func(l logAt) bool { return l.log.same(old) })
	f.left = append(f.left, logAt{old, f.cursor.Seq()})
	seq := uint64(0)
	for _, l := range f.left {
		if l.log.same(now) {
			seq = l.seq
		}
	}
	f.cursor.Close()
	f.cursor = f.box.Events(seq)
	return true
}
