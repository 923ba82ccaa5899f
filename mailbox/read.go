package mailbox

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// showUnderLock is how long Read keeps other readers out while its output is
// being taken. Tests shorten it.
var showUnderLock = 2 * time.Second

// ReadOptions choose what is read.
type ReadOptions struct {
	IDs   []wire.ID                // these only; unread ones
	Match func(*wire.Message) bool // nil: all
	Limit int                      // at most so many; 0: no limit

	// Fits is asked about each message in order, once, so that it may add up;
	// the batch ends before the first for which it says no. nil: all fit.
	Fits func(*wire.Message) bool

	// Skip is for ids that are in somebody's hands, such as a runner's.
	Skip map[wire.ID]bool

	// Prompt says that show waits for nobody but the file system, so that the
	// time it takes need not be watched.
	Prompt bool

	// Owed is how many ids are wanted in Batch.Owed.
	Owed int

	// LookAhead is how many further unread messages are opened, to see whether
	// they replace or follow those in the batch.
	LookAhead int
}

// skip adds to Skip, in a map of its own.
func (o *ReadOptions) skip(ids map[wire.ID]bool) {
	if len(ids) == 0 {
		return
	}
	all := maps.Clone(ids)
	maps.Copy(all, o.Skip)
	o.Skip = all
}

// Batch is what one Read shows.
type Batch struct {
	ID    wire.ID // of the batch, as in message_read
	Items []*Item

	// Ahead are further unread messages, as far as LookAhead went.
	Ahead []*Item

	More int // unread messages that match and are not in the batch

	// Owed are the oldest of the messages that wait for an acknowledgement, as
	// they were before this reading, and how many there are; if ReadOptions.Owed
	// asks for them.
	Owed      []wire.ID
	OwedTotal int

	Unreadable int // unread files that could not be read, and were left
	SetAside   int // files that were no messages, and were moved to bad now

	// Unmarked says why messages that were shown could not be marked as read:
	// a read-only or full disk. They are still unread.
	Unmarked error

	// Unlogged says why the reading could not be noted among the events.
	Unlogged error
}

// Peek chooses as Read does, moves no message and takes no lock but to take in
// what was dropped.
func (b *Box) Peek(ctx context.Context, opt ReadOptions) (Batch, error) {
	r, err := b.look(ctx)
	if err != nil {
		return Batch{}, err
	}
	defer r.close()
	// What somebody holds is not theirs who look for mail; asked for by name it
	// is shown.
	if opt.IDs == nil {
		opt.skip(r.held(b.store.now()))
	}
	batch, err := r.choose(opt, nil, true)
	if err == errForeign {
		r.takeInForeign(ctx)
		return r.choose(opt, nil, false)
	}
	return batch, err
}

// Read chooses unread messages, has show write them, and then marks those that
// show says were taken: the first n. Read holds the reader's lock for at most
// two seconds of showing; if it takes longer, show goes on without it, another
// reader may show the same messages, and what is still unread then is moved.
// An error of show does not keep the messages it took from being marked; it is
// returned.
//
// What a runner types to its agent just now is passed over, as Skip is, and so
// is what somebody holds under a lease.
//
// Where nothing can be marked (a read-only disk) the messages are shown all
// the same, and Unmarked says why.
func (b *Box) Read(ctx context.Context, opt ReadOptions, show func(Batch) (taken int, err error)) (Batch, error) {
	before, err := b.enter()
	bad := 0
	if err == nil {
		if before.dropped() {
			t, _ := b.takeIn(ctx, nil)
			bad = t.Bad
		}
		before.letGo()
		defer before.close()
	}
	batch, err := b.read(ctx, opt, show, before)
	batch.SetAside += bad
	return batch, err
}

// read is Read after drops were taken in. before is the mailbox as it was opened
// then, nil if it was not.
func (b *Box) read(ctx context.Context, opt ReadOptions, show func(Batch) (int, error), before *room) (Batch, error) {
	unlock, err := b.lock(ctx, "reader", lockfile.Exclusive)
	if readOnly(err) {
		batch, e := b.Peek(ctx, opt)
		if e != nil {
			return batch, e
		}
		batch.Unmarked = err
		_, e = show(batch)
		return batch, e
	}
	if err != nil {
		return Batch{}, err
	}
	locked := true
	defer func() {
		if locked {
			unlock()
		}
	}()
	r, err := b.enterAgain(before)
	if err != nil {
		return Batch{}, err
	}
	defer func() { r.close() }()
	if typed, _, err := r.inHands(time.Now()); err == nil {
		opt.skip(typed)
	}
	held, free := r.held(b.store.now()), r.unleased
	opt.skip(held)
	batch, err := r.choose(opt, r.setAside, before != nil)
	if err == errForeign {
		// Files were dropped into new: they are taken in without this lock.
		unlock()
		locked = false
		r.takeInForeign(ctx)
		batch, err := b.read(ctx, opt, show, nil)
		batch.SetAside += r.bad
		return batch, err
	}
	if err != nil {
		return batch, err
	}
	batch.ID, batch.SetAside = wire.NewID(), r.bad

	// No goroutine shows, and no timer runs beside what is prompt: most commands
	// are done before another thread has begun.
	var state sync.Mutex
	late, shown := false, false
	if !opt.Prompt {
		defer time.AfterFunc(showUnderLock, func() {
			state.Lock()
			defer state.Unlock()
			if !shown {
				late = true
				unlock()
			}
		}).Stop()
	}
	taken, showErr := show(batch)
	state.Lock()
	shown, locked = true, !late
	state.Unlock()
	free = free && locked // nobody can have got a lease: the lock was held
	if !locked && taken > 0 {
		if unlock, err = b.lock(ctx, "reader", lockfile.Exclusive); err != nil {
			batch.Unmarked = err
			return batch, showErr
		}
		locked = true
		again, err := b.enter()
		if err != nil {
			return batch, err
		}
		r.close()
		r = again
	}
	settle := r.settleFree
	if free {
		settle = r.settle
	}
	moved := make([]*Item, 0, len(batch.Items))
	for _, it := range batch.Items[:min(taken, len(batch.Items))] {
		switch err := settle(it.Message); {
		case errors.Is(err, errGone):
		case err != nil:
			batch.Unmarked = err
		default:
			moved = append(moved, it)
		}
	}
	unlock()
	locked = false
	if len(moved) > 0 {
		events := make([]wire.Event, len(moved))
		for i, it := range moved {
			events[i] = readEvent(it.ID, batch.ID)
		}
		batch.Unlogged = b.Append(ctx, AppendOptions{}, events...)
	}
	return batch, showErr
}

// readEvent says that a message was read, in a batch.
func readEvent(id, batch wire.ID) wire.Event {
	return wire.Event{Kind: wire.EventRead, Source: "cli", Extra: []wire.Field{
		wire.StringField("id", string(id)), wire.StringField("batch", string(batch)),
	}}
}

// readOnly reports whether an error means that nothing can be written here.
func readOnly(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// errForeign says that choose met names in new that may be dropped files.
var errForeign = errors.New("foreign names in new")

// choose picks the batch, as chooseUnread does, and says what is owed.
func (r *room) choose(opt ReadOptions, aside func(*BadError), stop bool) (Batch, error) {
	b, err := r.chooseUnread(opt, aside, stop)
	if err == nil && opt.Owed > 0 {
		// What cannot be counted keeps nothing from being shown.
		if cur, e := r.dir("inbox/cur", false); e == nil {
			b.Owed, b.OwedTotal, _ = pick(cur, opt.Owed, false, nil)
		}
	}
	return b, err
}

// chooseUnread picks the batch. aside is told of bad files under a message's name;
// nil leaves them. With stop it returns errForeign, before any message is
// opened, when foreign names lie in new.
func (r *room) chooseUnread(opt ReadOptions, aside func(*BadError), stop bool) (Batch, error) {
	var b Batch
	seen := 0        // names of which so much is known that they count no more
	var last wire.ID // the last of them
	for {
		want := 0
		if opt.Match == nil && opt.IDs == nil && len(opt.Skip) == 0 && opt.Limit > 0 {
			want = opt.Limit + opt.LookAhead + 2*seen
		}
		list, total := opt.IDs, len(opt.IDs)
		if opt.IDs == nil {
			var err error
			if list, total, err = r.unread(want, false); err != nil {
				return b, err
			}
			if stop && len(r.foreign) > 0 {
				return b, errForeign
			}
			if last != "" {
				n, _ := slices.BinarySearch(list, last)
				for n < len(list) && list[n] == last {
					n++
				}
				list = list[n:]
			}
		}
		full, err := r.chooseAmong(&b, list, opt, aside)
		if err != nil {
			return b, err
		}
		unlisted := 0
		if want > 0 {
			unlisted = max(0, total-want)
		}
		if full || unlisted == 0 || len(list) == 0 {
			b.More += unlisted
			return b, nil
		}
		// Bad files took the place of good ones: on with those behind.
		seen += len(list)
		last = list[len(list)-1]
	}
}

// chooseAmong adds to the batch from a list of ids, and reports whether it has
// all that it may have.
func (r *room) chooseAmong(b *Batch, list []wire.ID, opt ReadOptions, aside func(*BadError)) (full bool, err error) {
	ended := false // Fits said no
	if b.Items == nil && opt.Limit > 0 {
		b.Items = make([]*Item, 0, min(opt.Limit, len(list)))
	}
	for i, id := range list {
		if opt.Skip[id] {
			continue
		}
		enough := ended || opt.Limit > 0 && len(b.Items) >= opt.Limit
		if enough && len(b.Ahead) >= opt.LookAhead && opt.Match == nil {
			// The rest is counted by name.
			for _, id := range list[i:] {
				if !opt.Skip[id] {
					b.More++
				}
			}
			return true, nil
		}
		it, err := r.open(place{placeNew, "inbox/new"}, id)
		var be *BadError
		switch {
		case errors.As(err, &be):
			if be.Unreadable != nil {
				b.Unreadable++
			} else if aside != nil {
				aside(be)
			}
			continue
		case errors.Is(err, errGone):
			continue
		case err != nil:
			return false, err
		}
		if opt.Match != nil && !opt.Match(it.Message) {
			if len(b.Ahead) < opt.LookAhead {
				b.Ahead = append(b.Ahead, it)
			}
			continue
		}
		if !enough && opt.Fits != nil && !opt.Fits(it.Message) {
			ended, enough = true, true
		}
		if enough {
			b.More++
			if len(b.Ahead) < opt.LookAhead {
				b.Ahead = append(b.Ahead, it)
			}
			continue
		}
		if r.opened(leasesDir) != nil || opt.IDs != nil { // most mailboxes have none
			r.history(it)
		}
		b.Items = append(b.Items, it)
	}
	return ended || opt.Limit > 0 && len(b.Items) >= opt.Limit, nil
}

// settle moves a message that has been read: new to cur when an
// acknowledgement is asked for, else to done. errGone when it is no longer in
// new. The reader's lock is held.
func (r *room) settle(m *wire.Message) error {
	to := place{placeDone, "inbox/done/" + m.ID.Day()}
	if m.RequiresAck && !r.acked(m.ID) {
		to = place{placeCur, "inbox/cur"}
	}
	err := r.move(m.ID, place{placeNew, "inbox/new"}, to)
	if err == nil {
		r.unnote(m)
	}
	return err
}

// settleFree is settle for what may have been taken by somebody meanwhile: they
// keep it, and it counts as gone.
func (r *room) settleFree(m *wire.Message) error {
	if err := r.ownersTo(m.ID); err != nil {
		var leased *LeasedError
		if errors.As(err, &leased) {
			return errGone
		}
		return err
	}
	return r.settle(m)
}

// Acked reports whether the mailbox's owner has sent the ack of a message that
// is unread, because it was put back.
func (b *Box) Acked(id wire.ID) bool {
	r, err := b.enter()
	if err != nil {
		return false
	}
	defer r.close()
	return r.acked(id)
}

// acked reports whether the mailbox's owner has sent the ack of a message, as
// far as the index of what was sent knows: it was put back with unread.
func (r *room) acked(id wire.ID) bool {
	ack := wire.Derive("ack", id, r.box.Address())
	d, err := r.dir("sent/"+ack.Day(), false)
	if err != nil || d == nil {
		return false
	}
	has, _ := d.Has(string(ack) + ".json")
	return has
}

// move renames a message from one place to the next. A second copy, where the
// name is taken there, goes to bad as a duplicate.
func (r *room) move(id wire.ID, from, to place) error {
	name := string(id) + ".json"
	src, err := r.dir(from.path, false)
	if err != nil {
		return err
	}
	if src == nil {
		return errGone
	}
	dst, err := r.dir(to.path, true)
	if err != nil {
		return err
	}
	err = atomicfile.Move(src, name, dst, name)
	switch {
	case atomicfile.Absent(err):
		return errGone
	case errors.Is(err, fs.ErrExist):
		return r.toBad(src, name, "a duplicate of the message in "+to.path)
	}
	return err
}
