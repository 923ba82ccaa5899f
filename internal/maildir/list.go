package maildir

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/wire"
)

// Get finds a message by its full id in the mailbox or its archive, or returns ErrNotFound. The cost
// does not depend on how much is there.
func (b *Box) Get(id wire.ID) (*wire.Item, error) {
	it, err := b.OpenAnywhere(id)
	if err != nil {
		return nil, err
	}
	b.setLater(it)
	b.forgetReplaced(it)
	return it, nil
}

// Message is Get without what is noted about the message here, and does not find one that is not due yet.
func (b *Box) Message(id wire.ID) (*wire.Message, error) {
	it, err := b.OpenAnywhere(id)
	if err != nil {
		return nil, err
	}
	if b.setLater(it); it.State == wire.Later {
		return nil, notFound(id)
	}
	return it.Message, nil
}

// GetDerived is Get for a message with a derived id, or the next one if others have taken it: see Post.Derived.
func (b *Box) GetDerived(id wire.ID, isIt func(*wire.Message) bool) (*wire.Item, error) {
	for ; ; id = id.Next() {
		if it, err := b.Get(id); err != nil || isIt(it.Message) {
			return it, err
		}
	}
}

// OpenAnywhere is Get without a check of what the message replaces, and without the state Later.
func (b *Box) OpenAnywhere(id wire.ID) (it *wire.Item, err error) {
	err = b.Find(id, func(d Folder) error {
		it, err = b.Open(d, id)
		return err
	})
	return it, err
}

// Find calls f with the folders where a message may be, until f returns something other than ErrNotFound.
func (b *Box) Find(id wire.ID, f func(Folder) error) error {
	for range looks {
		folders, err := b.foldersOf(id)
		if err != nil {
			return cmp.Or(b.CheckPresent(), err)
		}
		for _, d := range folders {
			if err := f(d); !errors.Is(err, ErrNotFound) {
				return err
			}
		}
	}
	return cmp.Or(b.CheckPresent(), notFound(id))
}

func notFound(id wire.ID) error { return fmt.Errorf("%s: %w", id, ErrNotFound) }

// Sent finds a message in the index of what the agent sent. The index is not synced: an entry that a power cut has torn
// is not found.
func (b *Box) Sent(id wire.ID) (*wire.Message, error) {
	it, err := b.Open(b.sent(id), id)
	if bad, ok := errors.AsType[*BadError](err); ok && bad.Unreadable == nil {
		err = notFound(id)
	}
	if err != nil {
		return nil, err
	}
	return it.Message, nil
}

// FirstSign returns the earliest time, by the clock here, that a message's file or the directory of its day bears; zero
// if the mailbox neither got nor sent it. The clock that made the id may have been ahead.
func (b *Box) FirstSign(id wire.ID) (at time.Time) {
	folders, _ := b.foldersOf(id)
	for _, d := range append(folders, b.sent(id)) {
		file, err := b.store.root.Lstat(d.File(id))
		if err != nil {
			continue
		}
		times := []time.Time{file.ModTime()}
		if day, err := b.store.root.Lstat(d.Dir); err == nil && isDay(path.Base(d.Dir)) {
			times = append(times, day.ModTime())
		}
		for _, t := range times {
			if at.IsZero() || t.Before(at) {
				at = t
			}
		}
	}
	return at
}

// Match returns the ids that a fragment matches, in the first folder that has any: new and cur, then done from the
// newest day, then withdrawn, archive and sent. A full id is looked up without listing a directory.
func (b *Box) Match(f wire.Fragment) (found []wire.ID, err error) {
	if id, ok := f.ID(); ok {
		_, there, err := b.Locate(id)
		if !there && err == nil {
			there, err = b.Has(b.sent(id), id)
		}
		if there {
			found = []wire.ID{id}
		}
		return found, err
	}
	all := Everywhere
	all.Sent, all.Newest = true, true
	err = b.eachFolder(all, func(l *Listing) bool {
		for i := range l.Len() {
			if id := l.ID(i); f.Matches(id) {
				found = append(found, id)
			}
		}
		return len(found) == 0 || l.State == wire.Unread
	})
	if len(found) > 0 {
		err = nil // an unreadable folder does not hide a match
	}
	slices.Sort(found)
	return found, err
}

// Range selects messages of a mailbox, and says in which order.
type Range struct {
	Unread, Owed, Done, Withdrawn, Archive, Sent bool
	Later                                        bool // what is unread and not due yet

	Newest bool // list days and messages of each part newest first
	Limit  int  // open at most this many messages (0: all, -1: none) and count the rest

	Wants func(wire.ID) bool         // nil: all
	With  headers.Flags              // only messages that have all of these
	Keep  func(*headers.Header) bool // and that it accepts; nil: all
	Texts bool                       // Keep looks at About or Text

	// Since skips days of done, archive and sent whose directory has not changed since then. It relies on neither ids
	// nor senders' clocks. The other days still have older messages.
	Since time.Time

	Listed *Listing        // what is in new, as listed just now; nil: it is listed
	Bad    func(*BadError) // is called for files that are no messages, or cannot be read; nil: they are only counted
}

// Everywhere is the whole mailbox without the index of sent messages.
var Everywhere = Range{Unread: true, Later: true, Owed: true, Done: true, Withdrawn: true, Archive: true}

// folders calls f with the folders of a range, in the order in which messages move, until f returns false.
func (b *Box) folders(rg Range, f func(Folder) bool) (errs error) {
	for _, part := range []struct {
		isWanted, hasDays bool
		Folder
	}{
		{rg.Unread || rg.Later, false, b.Unread()}, {rg.Owed, false, b.Owed()}, {rg.Done, true, b.AllDone()},
		{rg.Withdrawn, false, b.withdrawn()}, {rg.Archive, true, b.Archive()}, {rg.Sent, true, b.AllSent()},
	} {
		folders, err := []Folder{part.Folder}, error(nil)
		if part.isWanted && part.hasDays {
			folders, err = b.Days(part.Folder, rg.Since)
		}
		if errs = errors.Join(errs, err); rg.Newest {
			slices.Reverse(folders)
		}
		for _, d := range folders {
			if part.isWanted && !f(d) {
				return errs
			}
		}
	}
	return errs
}

// eachFolder calls f with the listings of the folders of a range until f returns false. Errors are returned at the end, so
// that an unreadable folder does not hide others.
func (b *Box) eachFolder(rg Range, f func(*Listing) bool) error {
	lockfile.Reads("walk " + b.In())
	var errs error
	err := b.folders(rg, func(d Folder) bool {
		l, err := rg.Listed, error(nil)
		if d.State != wire.Unread || l == nil {
			l, err = b.List(d)
		}
		if d.State == wire.Unread {
			var failed error
			l, failed = b.withHeld(l, rg)
			err = errors.Join(err, failed)
		}
		errs = errors.Join(errs, err)
		return f(l)
	})
	return errors.Join(err, errs)
}

// Walked is what Walk found beside the messages.
type Walked struct {
	More int // messages beyond the limit, or in the folder behind the one that was not to be the last
	Bad  int // files that are not messages, or cannot be read
}

// Entries calls f with the messages of a range in the order of Walk until f returns false, without opening or ingesting
// anything. With, Keep and Limit do not count.
func (b *Box) Entries(rg Range, f func(Folder, wire.ID) bool) error {
	if err := b.CheckPresent(); err != nil {
		return err
	}
	return b.eachFolder(rg, func(l *Listing) bool {
		for i := range l.Len() {
			if !f(l.Folder, l.ID(l.at(i, rg.Newest))) {
				return false
			}
		}
		return true
	})
}

// IDs lists the messages of a range as Entries does, up to its limit.
func (b *Box) IDs(rg Range) (ids []wire.ID, err error) {
	err = b.Entries(rg, func(_ Folder, id wire.ID) bool {
		ids = append(ids, id)
		return rg.Limit == 0 || len(ids) < rg.Limit
	})
	return ids, err
}

// IDsIn lists the messages of a folder, oldest first, by file name alone.
func (b *Box) IDsIn(d Folder) ([]wire.ID, error) {
	l, err := b.List(d)
	return l.IDs(), err
}

// UnreadFrom is UnreadIDs if what is in new was listed just now.
func (b *Box) UnreadFrom(listed *Listing) ([]wire.ID, error) {
	return b.IDs(Range{Unread: true, Listed: listed})
}

// UnreadIDs lists the unread messages, oldest first, without ingesting dropped files.
func (b *Box) UnreadIDs() ([]wire.ID, error) { return b.IDs(Range{Unread: true}) }

// OwedIDs lists the messages that wait for an acknowledgement, oldest first.
func (b *Box) OwedIDs() ([]wire.ID, error) { return b.IDs(Range{Owed: true}) }

// Walk calls f with the messages of a range, part by part in the order in which messages move, each oldest first, until
// f returns false. It takes in no dropped files: package inbox does. An unreadable part does not hide others; its error is
// returned at the end. It skips messages that have moved on. It keeps the headers of large folders for the next look.
func (b *Box) Walk(rg Range, f func(*wire.Item) bool) (found Walked, err error) {
	if err := b.CheckPresent(); err != nil {
		return found, err
	}
	w := &walk{Box: b, Range: rg, use: f}
	err = b.eachFolder(rg, w.folder)
	return w.found, err
}

// walk is a Walk in progress.
type walk struct {
	*Box
	Range
	use   func(*wire.Item) bool
	shown int
	found Walked
}

// folder walks through a folder, and reports whether to go on.
func (w *walk) folder(l *Listing) bool {
	l.learn(w.Range)
	defer l.close()
	if l.hasNone(w.With) {
		return true
	}
	for i := range l.Len() {
		if w.Limit < 0 || w.Limit > 0 && w.shown == w.Limit {
			w.found.More += w.behind(l, i-1)
			return true
		}
		at := l.at(i, w.Newest)
		if !l.accepts(at, w.Range) {
			continue
		}
		it, err := l.open(at)
		if bad, isBad := errors.AsType[*BadError](err); isBad {
			if w.found.Bad++; w.Bad != nil {
				w.Bad(bad)
			}
		}
		if err != nil {
			continue
		}
		w.setLater(it)
		w.forgetReplaced(it)
		if w.shown++; !w.use(it) {
			w.found.More += w.behind(l, i)
			return false
		}
	}
	return true
}

// behind counts the messages of a folder behind the i-th.
func (w *walk) behind(l *Listing, i int) (n int) {
	if w.Wants == nil && w.With == 0 && w.Keep == nil {
		return l.Len() - i - 1
	}
	for i++; i < l.Len(); i++ {
		if l.accepts(l.at(i, w.Newest), w.Range) {
			n++
		}
	}
	return n
}
