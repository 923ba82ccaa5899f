package maildir

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Get finds a message by its full id in the mailbox or its archive, or returns ErrNotFound. The cost
// does not depend on how much is there.
func (b *Box) Get(id wire.ID) (*Item, error) {
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
	if b.setLater(it); it.State == Later {
		return nil, notFound(id)
	}
	return it.Message, nil
}

// GetDerived is Get for a message with a derived id, or the next one if others have taken it: see Post.Derived.
func (b *Box) GetDerived(id wire.ID, isIt func(*wire.Message) bool) (*Item, error) {
	for ; ; id = id.Next() {
		if it, err := b.Get(id); err != nil || isIt(it.Message) {
			return it, err
		}
	}
}

// OpenAnywhere is Get without a check of what the message replaces, and without the state Later.
func (b *Box) OpenAnywhere(id wire.ID) (it *Item, err error) {
	err = b.Find(id, func(d Folder) error {
		it, err = b.Open(d, id)
		return err
	})
	return it, err
}

// Find calls f with the folders where a message may be, until f returns something other than ErrNotFound.
func (b *Box) Find(id wire.ID, f func(Folder) error) error {
	for range looks {
		folders, err := b.FoldersOf(id)
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
	folders, _ := b.FoldersOf(id)
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
	err = b.EachFolder(all, func(d Folder, ids []wire.ID) bool {
		found = append(found, slices.DeleteFunc(ids, func(id wire.ID) bool { return !f.Matches(id) })...)
		return len(found) == 0 || d.State == Unread
	})
	if len(found) > 0 {
		err = nil // an unreadable folder does not hide a match
	}
	slices.Sort(found)
	return found, err
}

// Range selects parts of a mailbox.
type Range struct {
	Unread, Owed, Done, Withdrawn, Archive, Sent bool
	Later                                        bool // what is unread and not due yet

	Newest bool // list days and messages of each part newest first
	Limit  int  // open at most this many messages (0: all, -1: none) and count the rest; not with Keep

	// Wants says which messages Walk opens (nil: all), and Keep which of these it decodes (nil: all), by their text.
	// Without a Limit several are opened at once: Keep is called concurrently.
	Wants func(wire.ID) bool
	Keep  func(id wire.ID, raw []byte) bool

	// Since skips days of done, archive and sent whose directory has not changed since then. It relies on neither ids
	// nor senders' clocks. The other days still have older messages.
	Since time.Time

	Listed []wire.ID // the messages in new that are due, as listed just now; nil: they are listed
}

// Everywhere is the whole mailbox without the index of sent messages.
var Everywhere = Range{Unread: true, Later: true, Owed: true, Done: true, Withdrawn: true, Archive: true}

// EachFolder calls f with each folder of a range and its messages, in the order in which messages move, until f returns
// false. Errors are returned at the end, so that an unreadable folder does not hide others.
func (b *Box) EachFolder(rg Range, f func(Folder, []wire.ID) bool) (errs error) {
	lockfile.Reads("walk a mailbox")
	for _, part := range []struct {
		isWanted, hasDays bool
		Folder
	}{
		{rg.Unread || rg.Later, false, b.Unread()}, {rg.Owed, false, b.Owed()}, {rg.Done, true, b.AllDone()},
		{rg.Withdrawn, false, b.withdrawn()}, {rg.Archive, true, b.Archive()}, {rg.Sent, true, b.AllSent()},
	} {
		if !part.isWanted {
			continue
		}
		folders, err := []Folder{part.Folder}, error(nil)
		if part.hasDays {
			folders, err = b.Days(part.Folder, rg.Since)
		}
		errs = errors.Join(errs, err)
		if rg.Newest {
			slices.Reverse(folders)
		}
		for _, d := range folders {
			ids, err := b.listed(d, rg)
			errs = errors.Join(errs, err)
			if rg.Newest {
				slices.Reverse(ids)
			}
			if !f(d, ids) {
				return errs
			}
		}
	}
	return errs
}

// listed lists the messages of a folder that a range selects.
func (b *Box) listed(d Folder, rg Range) (ids []wire.ID, err error) {
	switch {
	case d.State == Unread && !rg.Later:
		return b.AddHeld(rg.Listed)
	case d.State != Unread:
		return b.IDsIn(d)
	}
	if ids, err = b.IDsIn(d); err != nil {
		return nil, err
	}
	if rg.Unread {
		return b.AddHeld(ids)
	}
	later := b.later(ids)
	return slices.DeleteFunc(ids, func(id wire.ID) bool { return !later[id] }), nil
}

// Walked is what Walk found beside the messages.
type Walked struct {
	More int // messages beyond the limit
	Bad  int // files that are not messages, or cannot be read
}

// IDs lists the messages of a range in the order of Walk, without opening or ingesting anything. It lists no further
// day once it has reached the limit.
func (b *Box) IDs(rg Range) (ids []wire.ID, err error) {
	if err := b.CheckPresent(); err != nil {
		return nil, err
	}
	err = b.EachFolder(rg, func(_ Folder, some []wire.ID) bool {
		ids = append(ids, some...)
		return rg.Limit == 0 || len(ids) < rg.Limit
	})
	if rg.Limit > 0 && len(ids) > rg.Limit {
		ids = ids[:rg.Limit]
	}
	return ids, err
}

// openAhead is how many messages are opened before the first of them is used, where all are.
const openAhead = 32

// EachUnread yields those of the messages that are unread, each with its index in ids. It calls bad for files that are not
// messages or cannot be read.
func (b *Box) EachUnread(ids []wire.ID, held Held, bad func(*BadError)) iter.Seq2[int, *Item] {
	return b.openEach(b.Unread(), ids, held, 1, nil, bad)
}

// openEach yields the messages of a folder that keep accepts (nil: all), each with its index in ids. With new come those that
// are held. It opens so many at a time, on all processors. It skips messages that have moved on, and calls bad for files that
// are not messages or cannot be read.
func (b *Box) openEach(d Folder, ids []wire.ID, held Held, ahead int, keep func(wire.ID, []byte) bool, bad func(*BadError)) iter.Seq2[int, *Item] {
	return func(yield func(int, *Item) bool) {
		dir, name := b.store.root, d.File
		if len(ids) > 1 { // a path below the team costs system calls for each element
			if sub, err := dir.Sub(d.Dir); err == nil {
				defer sub.Close()
				dir, name = sub, FileName
			}
		}
		items, errs := make([]*Item, ahead), make([]error, ahead)
		open := func(from, step int, some []wire.ID) {
			for i := from; i < len(some); i += step {
				id := some[i]
				if h, isHeld := held[id]; isHeld {
					items[i], errs[i] = b.openIn(b.store.root, b.HeldBy(h).File(id), b.HeldBy(h), id, keep)
				} else {
					items[i], errs[i] = b.openIn(dir, name(id), d, id, keep)
				}
				if d.State == Unread && keep == nil && errors.Is(errs[i], ErrNotFound) { // it has just changed hands
					items[i], errs[i] = b.openUnread(id)
				}
			}
		}
		first := 0
		for some := range slices.Chunk(ids, ahead) {
			workers := min(runtime.GOMAXPROCS(0), len(some))
			var wg sync.WaitGroup
			for w := range workers - 1 {
				wg.Go(func() { open(w+1, workers, some) })
			}
			open(0, workers, some)
			wg.Wait()
			for i := range some {
				if err, isBad := errors.AsType[*BadError](errs[i]); isBad {
					bad(err)
				}
				if errs[i] != nil {
					continue
				}
				b.setLater(items[i])
				b.forgetReplaced(items[i])
				if !yield(first+i, items[i]) {
					return
				}
			}
			first += len(some)
		}
	}
}

func (b *Box) openUnread(id wire.ID) (*Item, error) {
	it, err := b.OpenAnywhere(id)
	if err == nil && it.State != Unread {
		err = notFound(id)
	}
	return it, err
}

// UnreadIDs lists the unread messages that are due, oldest first, without ingesting dropped files.
func (b *Box) UnreadIDs() ([]wire.ID, error) { return b.IDs(Range{Unread: true}) }

// AddHeld returns the unread messages, of which these are in new (nil: those that are due), oldest first.
func (b *Box) AddHeld(ids []wire.ID) (all []wire.ID, err error) {
	if ids == nil {
		if ids, err = b.IDsIn(b.Unread()); err != nil {
			return nil, err
		}
		ids = b.Due(ids)
	}
	held, err := b.Held()
	if len(held) == 0 {
		return ids, err
	}
	all = slices.Concat(ids, slices.Collect(maps.Keys(held)))
	slices.Sort(all)
	return slices.Compact(all), err
}

// OwedIDs lists the messages that wait for an acknowledgement, oldest first.
func (b *Box) OwedIDs() ([]wire.ID, error) { return b.IDs(Range{Owed: true}) }

// Walk calls f with the messages of a range, part by part in the order in which messages move, each oldest first, until
// f returns false. It takes in no dropped files: package inbox does. An unreadable part does not hide others; its error is
// returned at the end.
func (b *Box) Walk(rg Range, f func(*Item) bool) (found Walked, err error) {
	if err := b.CheckPresent(); err != nil {
		return found, err
	}
	shown := 0
	err = b.EachFolder(rg, func(d Folder, ids []wire.ID) bool {
		if rg.Limit < 0 || rg.Limit > 0 && shown == rg.Limit {
			found.More += len(ids)
			return true
		}
		var held Held
		if d.State == Unread {
			held, _ = b.Held()
		}
		if rg.Wants != nil {
			ids = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return !rg.Wants(id) })
		}
		ahead := 1
		if rg.Limit == 0 {
			ahead = openAhead
		}
		for i, it := range b.openEach(d, ids, held, ahead, rg.Keep, func(*BadError) { found.Bad++ }) {
			if !f(it) {
				return false
			}
			if shown++; shown == rg.Limit {
				found.More = len(ids) - i - 1
				break
			}
		}
		return true
	})
	return found, err
}
