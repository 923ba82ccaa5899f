package mailbox

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// showUnderLock is how long Read keeps other readers out while its output is being received. Tests shorten it.
var showUnderLock = 2 * time.Second

// ReadOptions choose what is read.
type ReadOptions struct {
	IDs       []wire.ID                // these only; unread ones
	Match     func(*Item) bool         // nil: all
	Current   bool                     // nothing that has expired or was superseded
	Limit     int                      // at most so many; 0: no limit
	Fits      func(*wire.Message) bool // asked in order, once each; the batch ends before the first no; nil: all fit
	LookAhead int                      // how many further unread messages are opened: they may replace or follow others

	countsAll bool // what lies beyond LookAhead counts as More, whether it matches or not
}

// Batch is what one Read shows.
type Batch struct {
	Items    []*Item
	Ahead    []*Item // further unread messages, as far as LookAhead went
	More     int     // unread messages that match and are not in the batch
	SetAside int     // files that were no messages, and were moved to bad now

	Unreadable []error // why files that may be messages could not be read: they are passed over
	Unmarked   error   // why messages that were shown are still unread: a read-only or full disk
	Unlogged   error   // why the reading could not be noted among the events
}

// Peek chooses as Read does, moves no message and takes no lock but to take in what was dropped. What is
// asked for by its id is shown whoever is handling it.
func (b *Box) Peek(ctx context.Context, opt ReadOptions) (Batch, error) {
	b.TakeIn(ctx)
	if err := b.Present(); err != nil {
		return Batch{}, err
	}
	var claimed claims
	if opt.IDs == nil {
		claimed = b.keptFromReaders()
	}
	return b.choose(opt, claimed, false)
}

// Read chooses unread messages, has show write them, and then marks those that show says were received:
// the first n. Read holds the reader's lock for at most two seconds of showing; if it takes longer, show
// goes on without it, another reader may show the same messages, and what is still unread then is moved.
// An error of show does not keep the messages that were received from being marked; it is returned.
//
// What a runner types just now, and what somebody holds under a lease, is passed over. What a hook has
// handed to a session is not: whoever reads gets it.
//
// Where nothing can be marked (a read-only disk) the messages are shown all the same, and Unmarked says why.
func (b *Box) Read(ctx context.Context, opt ReadOptions, show func(Batch) (received int, err error)) (batch Batch, err error) {
	taken, _ := b.TakeIn(ctx) // what cannot be taken in now stays where it is
	unlock, err := b.lock(ctx, "reader")
	if isUnwritable(err) {
		batch, e := b.Peek(ctx, opt)
		if e == nil {
			if len(batch.Items) > 0 {
				batch.Unmarked = err
			}
			_, e = show(batch)
		}
		return batch, e
	}
	if err != nil {
		return batch, err
	}
	defer func() { unlock() }()
	if batch, err = b.choose(opt, b.keptFromReaders(), true); err != nil {
		return batch, err
	}
	batch.SetAside += taken.Bad
	batch.Unmarked = b.markable(batch.Items)

	timer := time.AfterFunc(showUnderLock, unlock)
	received, showErr := show(batch)
	if batch.Unmarked != nil {
		received = 0 // show has said so
	}
	var theirs claims // of others, who were let in meanwhile
	if !timer.Stop() && received > 0 {
		if unlock, err = b.lock(ctx, "reader"); err != nil {
			unlock = func() {}
			batch.Unmarked = err
			return batch, showErr
		}
		theirs = b.keptFromReaders()
	}
	var events []wire.Event
	batchID := wire.NewID()
	for _, it := range batch.Items[:min(received, len(batch.Items))] {
		if _, isTheirs := theirs[it.ID]; isTheirs {
			continue
		}
		err := b.move(it.ID, b.unread(), b.afterRead(it.Message))
		if err == nil {
			events = append(events, readEvent(it.ID, batchID))
		} else if !errors.Is(err, ErrNotFound) {
			batch.Unmarked = err
		}
	}
	unlock()
	batch.Unlogged = b.note(ctx, events...)
	return batch, showErr
}

// markable is why what is read could not be moved, as far as that is known before: a read-only disk, a file in the way.
func (b *Box) markable(items []*Item) error {
	var dirs []string
	for _, it := range items {
		dirs = append(dirs, "inbox/new", "inbox/done")
		if it.RequiresAck {
			dirs[len(dirs)-1] = "inbox/cur"
		}
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if err := b.store.root.Writable(b.in(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// choose picks the batch out of the unread messages, without those that are claimed. With setAside what is no
// message is moved to bad.
func (b *Box) choose(opt ReadOptions, claimed claims, setAside bool) (batch Batch, err error) {
	list := slices.Clone(opt.IDs)
	if opt.IDs == nil {
		if list, err = b.list(b.unread()); err != nil {
			return batch, err
		}
	}
	list = slices.DeleteFunc(list, func(id wire.ID) bool { _, ok := claimed[id]; return ok })
	isBad := func(bad *BadError) {
		if bad.Unreadable != nil {
			batch.Unreadable = append(batch.Unreadable, bad)
		} else if setAside && b.setAsideBad(b.unread(), bad) {
			batch.SetAside++
		}
	}
	isFull, now := false, time.Now()
	for i, it := range b.openEach(b.unread(), list, nil, isBad, &err) {
		isStale := it.Expired(now) || it.SupersededBy != ""
		isWanted := (opt.Match == nil || opt.Match(it)) && !(opt.Current && isStale)
		isFull = isFull || isWanted && opt.Fits != nil && !opt.Fits(it.Message)
		if isWanted && isFull {
			batch.More++
		}
		if isWanted && !isFull {
			batch.Items = append(batch.Items, it)
			isFull = len(batch.Items) == opt.Limit
		} else if len(batch.Ahead) < opt.LookAhead {
			batch.Ahead = append(batch.Ahead, it)
		}
		if isFull && len(batch.Ahead) >= opt.LookAhead && (opt.Match == nil || opt.countsAll) {
			batch.More += len(list) - i - 1 // counted by name
			break
		}
	}
	return batch, err
}

// LastBatch finds the messages that the last Read marked, oldest first. What is nowhere any more, or cannot
// be read, is left out.
func (b *Box) LastBatch() (items []*Item, err error) {
	batch := ""
	events, err := b.Log().Tail(func(e *wire.Event) bool {
		if e.Kind != wire.EventRead {
			return false
		}
		batch = cmp.Or(batch, e.Field("batch"))
		return e.Field("batch") != batch // an earlier one: this batch is whole
	})
	for _, e := range events {
		if e.Kind != wire.EventRead || e.Field("batch") != batch {
			continue
		}
		it, err := b.Get(e.MessageID())
		_, isBad := errors.AsType[*BadError](err)
		if err == nil {
			items = append(items, it)
		} else if !errors.Is(err, ErrNotFound) && !isBad {
			return nil, err
		}
	}
	return items, err
}
