package mailbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// showUnderLock is how long Read keeps other readers out while its output is being
// received. Tests shorten it.
var showUnderLock = 2 * time.Second

// ReadOptions choose what is read.
type ReadOptions struct {
	IDs   []wire.ID                // these only; unread ones
	Match func(*wire.Message) bool // nil: all
	Limit int                      // at most so many; 0: no limit

	// Fits is asked about each message in order, once, so that it may add up; the batch
	// ends before the first for which it says no. nil: all fit.
	Fits func(*wire.Message) bool

	// Owed is how many ids are wanted in Batch.Owed.
	Owed int

	// LookAhead is how many further unread messages are opened, to see whether they
	// replace or follow those in the batch.
	LookAhead int
}

// Batch is what one Read shows.
type Batch struct {
	ID    wire.ID // of the batch, as in message_read
	Items []*Item

	// Ahead are further unread messages, as far as LookAhead went.
	Ahead []*Item

	More int // unread messages that match and are not in the batch

	// Owed are the oldest of the messages that wait for an acknowledgement, as they
	// were before this reading, and how many there are; if ReadOptions.Owed asks.
	Owed      []wire.ID
	OwedTotal int

	Unreadable int // unread files that could not be read, and were left
	SetAside   int // files that were no messages, and were moved to bad now

	// Unmarked says why messages that were shown could not be marked as read: a
	// read-only or full disk. They are still unread.
	Unmarked error

	// Unlogged says why the reading could not be noted among the events.
	Unlogged error
}

// Peek chooses as Read does, moves no message and takes no lock but to take in what
// was dropped. What is asked for by its id is shown whoever is handling it.
func (b *Box) Peek(ctx context.Context, opt ReadOptions) (Batch, error) {
	ids, err := b.listUnread(ctx)
	if err != nil {
		return Batch{}, err
	}
	claimed := b.keptFromReaders()
	if opt.IDs != nil {
		claimed = nil
	}
	return b.choose(opt, ids, claimed, false)
}

// Read chooses unread messages, has show write them, and then marks those that show
// says were received: the first n. Read holds the reader's lock for at most two
// seconds of showing; if it takes longer, show goes on without it, another reader may
// show the same messages, and what is still unread then is moved. An error of show
// does not keep the messages that were received from being marked; it is returned.
//
// What a runner types just now, and what somebody holds under a lease, is passed over.
// What a hook has handed to a session is not: whoever reads gets it.
//
// Where nothing can be marked (a read-only disk) the messages are shown all the same,
// and Unmarked says why.
func (b *Box) Read(ctx context.Context, opt ReadOptions, show func(Batch) (received int, err error)) (batch Batch, err error) {
	taken, err := b.TakeIn(ctx)
	if errors.Is(err, ErrNoAgent) {
		return batch, err
	}
	unlock, err := b.lock(ctx, "reader")
	if readOnly(err) {
		batch, e := b.Peek(ctx, opt)
		if e == nil {
			batch.Unmarked = err
			_, e = show(batch)
		}
		return batch, e
	}
	if err != nil {
		return batch, err
	}
	defer func() { unlock() }()
	ids, _, err := b.list(b.unread().dir)
	if err != nil {
		return batch, err
	}
	if batch, err = b.choose(opt, ids, b.keptFromReaders(), true); err != nil {
		return batch, err
	}
	batch.ID = wire.NewID()
	batch.SetAside += taken.Bad

	timer := time.AfterFunc(showUnderLock, unlock)
	received, showErr := show(batch)
	var claimed claims
	if !timer.Stop() && received > 0 {
		// Others were let in meanwhile: what they have is theirs.
		if unlock, err = b.lock(ctx, "reader"); err != nil {
			unlock = func() {}
			batch.Unmarked = err
			return batch, showErr
		}
		claimed = b.keptFromReaders()
	}
	var events []wire.Event
	for _, it := range batch.Items[:min(received, len(batch.Items))] {
		if _, ok := claimed[it.ID]; ok {
			continue
		}
		switch err := b.markRead(it.Message); {
		case err == errGone:
		case err != nil:
			batch.Unmarked = err
		default:
			events = append(events, readEvent(it.ID, batch.ID))
		}
	}
	unlock()
	batch.Unlogged = b.note(ctx, events...)
	return batch, showErr
}

// readEvent says that a message was read, in a batch.
func readEvent(id, batch wire.ID) wire.Event {
	return wire.Event{Kind: wire.EventRead, Source: "cli"}.With("id", string(id)).With("batch", string(batch))
}

// choose picks the batch out of the unread messages. With setAside what is no message is
// moved to bad.
func (b *Box) choose(opt ReadOptions, unread []wire.ID, claimed claims, setAside bool) (batch Batch, err error) {
	list := opt.IDs
	if list == nil {
		list = unread
	}
	list = slices.DeleteFunc(slices.Clone(list), func(id wire.ID) bool { _, ok := claimed[id]; return ok })
	history := b.claims()
	ended := false // Fits said no
	for i, id := range list {
		enough := ended || opt.Limit > 0 && len(batch.Items) >= opt.Limit
		if enough && len(batch.Ahead) >= opt.LookAhead && opt.Match == nil {
			batch.More += len(list) - i // counted by name
			break
		}
		it, err := b.open(b.unread(), id)
		var bad *BadError
		switch {
		case errors.As(err, &bad):
			if bad.Unreadable != nil {
				batch.Unreadable++
			} else if setAside && b.setAsideBad(bad) {
				batch.SetAside++
			}
			continue
		case err == errGone:
			continue
		case err != nil:
			return batch, err
		}
		b.addLease(it, history)
		matches := opt.Match == nil || opt.Match(it.Message)
		if matches && !enough && opt.Fits != nil && !opt.Fits(it.Message) {
			ended, enough = true, true
		}
		if matches && !enough {
			batch.Items = append(batch.Items, it)
			continue
		}
		if matches {
			batch.More++
		}
		if len(batch.Ahead) < opt.LookAhead {
			batch.Ahead = append(batch.Ahead, it)
		}
	}
	if opt.Owed > 0 {
		// What cannot be counted keeps nothing from being shown.
		owed, _, _ := b.list(b.owed().dir)
		batch.OwedTotal = len(owed)
		batch.Owed = owed[:min(len(owed), opt.Owed)]
	}
	return batch, nil
}

// LastBatch finds the messages that the last Read marked, oldest first. Those that are
// nowhere any more are left out.
func (b *Box) LastBatch() ([]*Item, error) {
	var ids []wire.ID
	batch := ""
	_, err := b.Log().Tail(func(e *wire.Event) bool {
		if e.Kind != wire.EventRead {
			return false
		}
		if batch = cmp.Or(batch, e.Field("batch")); e.Field("batch") != batch {
			return true // an earlier one: this batch is whole
		}
		ids = append(ids, e.MessageID())
		return false
	})
	if err != nil {
		return nil, err
	}
	var items []*Item
	for _, id := range slices.Backward(ids) {
		it, err := b.Get(id)
		switch {
		case err == nil:
			items = append(items, it)
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}
	}
	return items, nil
}
