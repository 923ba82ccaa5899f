package mailbox

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// State of a message at one recipient.
type State string

// The states; Archived messages are done ones that lie in the archive.
const (
	Unread    State = "unread"
	Aside     State = "aside" // taken too often and never finished
	Owed      State = "owed"
	Done      State = "done"
	Withdrawn State = "withdrawn"
	Bad       State = "bad"
)

// stateOf is the state of what lies in a place, "" for any other name.
func stateOf(place string) State {
	switch place {
	case placeNew:
		return Unread
	case placeAside:
		return Aside
	case placeCur:
		return Owed
	case placeDone, placeArchive:
		return Done
	case placeWithdrawn:
		return Withdrawn
	}
	return ""
}

// Item is a message as it lies in a mailbox.
type Item struct {
	*wire.Message
	State State
	Size  int    // bytes on disk
	Where string // the directory it lies in

	// Takings say who took it under a lease and did not finish it; nil: nobody,
	// or not asked for. Of what is unread or set aside only.
	Takings *Takings

	// Written is when the file was written, if Range.Times asked for it.
	Written time.Time
}

// Messages are the messages of items, in their order.
func Messages(items []*Item) []*wire.Message {
	out := make([]*wire.Message, len(items))
	for i, it := range items {
		out[i] = it.Message
	}
	return out
}

// ids calls f with the ids in a directory, in no order.
func ids(d *atomicfile.Dir, f func(wire.ID)) error { return list(d, f, nil) }

func isMessageName(n string) bool { return len(n) == 41 && n[36:] == ".json" && wire.IsID(n[:36]) }

// list calls f with the ids in a directory, and foreign, if there is one, with
// the other names that may be dropped files.
func list(d *atomicfile.Dir, f func(wire.ID), foreign func(string)) error {
	if d == nil {
		return nil
	}
	return d.Names(func(names []string) bool {
		for _, n := range names {
			if isMessageName(n) {
				f(wire.ID(n[:36]))
			} else if foreign != nil && !notDropped(n) {
				foreign(n)
			}
		}
		return true
	})
}

// selection keeps the n smallest ids of a stream, or the n largest: once it has
// so many, a heap with the next one to go on top.
type selection struct {
	ids    []wire.ID
	n      int
	newest bool
}

func (s *selection) Len() int           { return len(s.ids) }
func (s *selection) Less(i, j int) bool { return (s.ids[i] > s.ids[j]) != s.newest }
func (s *selection) Swap(i, j int)      { s.ids[i], s.ids[j] = s.ids[j], s.ids[i] }
func (s *selection) Push(x any)         { s.ids = append(s.ids, x.(wire.ID)) }
func (s *selection) Pop() any {
	last := s.ids[len(s.ids)-1]
	s.ids = s.ids[:len(s.ids)-1]
	return last
}

func (s *selection) add(id wire.ID) {
	switch {
	case s.n <= 0 || len(s.ids) < s.n:
		if s.ids = append(s.ids, id); len(s.ids) == s.n {
			heap.Init(s)
		}
	case (id < s.ids[0]) != s.newest:
		s.ids[0] = id
		heap.Fix(s, 0)
	}
}

// pick lists a directory and returns its n oldest ids, oldest first, or its n
// newest, newest first, and how many there are in all. n <= 0: all of them.
func pick(d *atomicfile.Dir, n int, newest bool, foreign func(string)) ([]wire.ID, int, error) {
	s := selection{n: n, newest: newest, ids: make([]wire.ID, 0, min(max(n, 0), 32))}
	total := 0
	err := list(d, func(id wire.ID) {
		total++
		s.add(id)
	}, foreign)
	slices.Sort(s.ids)
	if newest {
		slices.Reverse(s.ids)
	}
	return s.ids, total, err
}

// unread lists the n oldest unread messages (or the newest), and notes in the
// room what foreign names it met in new.
func (r *room) unread(n int, newest bool) ([]wire.ID, int, error) {
	r.foreign = nil
	return pick(r.fresh, n, newest, func(name string) { r.foreign = append(r.foreign, name) })
}

// errGone is returned by open for a message that has moved on meanwhile.
var errGone = errors.New("moved meanwhile")

// open reads the message id from a directory of the mailbox. A file that is no
// whole message of that id gives a *BadError.
func (r *room) open(p place, id wire.ID) (*Item, error) {
	d, err := r.dir(p.path, false)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errGone
	}
	data, err := d.ReadFile(string(id)+".json", wire.MaxFile)
	if atomicfile.Absent(err) {
		return nil, errGone
	}
	if errors.Is(err, atomicfile.ErrNotRegular) || errors.Is(err, atomicfile.ErrTooLarge) {
		return nil, &BadError{Name: string(id) + ".json", Reason: err.Error()}
	}
	if exhausted(err) {
		return nil, err
	}
	if err != nil {
		// One file that cannot be read must not hide the others.
		return nil, &BadError{Name: string(id) + ".json", Reason: err.Error(), Unreadable: err}
	}
	m, err := wire.Decode(data)
	if err != nil {
		return nil, &BadError{Name: string(id) + ".json", Reason: err.Error()}
	}
	if m.ID != id {
		return nil, &BadError{Name: string(id) + ".json", Reason: fmt.Sprintf("the message inside is %s", m.ID)}
	}
	return &Item{Message: m, State: stateOf(p.name), Size: len(data), Where: d.Path()}, nil
}

// exhausted reports whether an error says something about this process rather
// than about the file.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// BadError says why a file is no message, or why it cannot be read.
type BadError struct {
	Name, Reason string
	Unreadable   error // it may well be a message: left where it is
}

func (e *BadError) Error() string { return e.Name + ": " + e.Reason }
func (e *BadError) Unwrap() error { return e.Unreadable }

// Get finds a message by its full id, wherever in the mailbox or its archive
// it lies, without a listing. ErrNotFound when it is nowhere.
func (b *Box) Get(id wire.ID) (*Item, error) {
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.get(id)
}

func (r *room) get(id wire.ID) (*Item, error) {
	// Twice: a message may be put back while we look further on.
	for range 2 {
		for _, p := range placesOf(id) {
			it, err := r.open(p, id)
			if err == nil || !errors.Is(err, errGone) {
				return r.history(it), err
			}
		}
	}
	return nil, fmt.Errorf("%s: %w", id, ErrNotFound)
}

// Sent finds a message in the index of what the agent sent.
func (b *Box) Sent(id wire.ID) (*wire.Message, error) {
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer r.close()
	it, err := r.open(place{"sent", "sent/" + id.Day()}, id)
	if errors.Is(err, errGone) {
		return nil, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return it.Message, nil
}

// Match returns the ids that a fragment fits in the first place that has any:
// new and cur, then done from the newest day, then what was sent. A full id is
// looked up without a listing.
func (b *Box) Match(f wire.Fragment) ([]wire.ID, error) {
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer r.close()
	if id, ok := f.ID(); ok {
		if _, there, err := r.locate(id); there || err != nil {
			return []wire.ID{id}, err
		}
		if d, err := r.dir("sent/"+id.Day(), false); d != nil && err == nil {
			if has, _ := d.Has(string(id) + ".json"); has {
				return []wire.ID{id}, nil
			}
		}
		return nil, nil
	}
	found, err := r.match(f, "inbox/new", asideDir, "inbox/cur")
	if len(found) > 0 || err != nil {
		return found, err
	}
	for _, top := range []string{"inbox/done", "inbox/withdrawn", "sent", "archive/done"} {
		paths := []string{top}
		if top != "inbox/withdrawn" {
			days, err := r.days(top)
			if err != nil {
				return nil, err
			}
			paths = paths[:0]
			for _, day := range slices.Backward(days) {
				paths = append(paths, top+"/"+day)
			}
		}
		for _, p := range paths {
			if found, err := r.match(f, p); len(found) > 0 || err != nil {
				return found, err
			}
		}
	}
	return nil, nil
}

func (r *room) match(f wire.Fragment, paths ...string) ([]wire.ID, error) {
	var found []wire.ID
	for _, p := range paths {
		d, err := r.dir(p, false)
		if err != nil {
			return nil, err
		}
		if err := ids(d, func(id wire.ID) {
			if f.Matches(id) && !slices.Contains(found, id) {
				found = append(found, id)
			}
		}); err != nil {
			return nil, err
		}
	}
	slices.Sort(found)
	return found, nil
}

// days lists the day directories below a path, oldest first.
func (r *room) days(path string) ([]string, error) {
	d, err := r.dir(path, false)
	if d == nil || err != nil {
		return nil, err
	}
	var days []string
	err = d.Names(func(names []string) bool {
		for _, n := range names {
			if isDay(n) {
				days = append(days, n)
			}
		}
		return true
	})
	slices.Sort(days)
	return days, err
}

func isDay(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// Counts are the numbers of messages that wait in a mailbox. Unread are those
// in nobody's hands; Held are unread ones that somebody holds under a lease.
type Counts struct {
	Unread, Held, Aside, Owed, Bad int

	Expired int // of those that are unread, as far as notes of it were made
}

// Count takes in what was dropped and counts by names alone.
func (b *Box) Count(ctx context.Context) (Counts, error) {
	var c Counts
	r, err := b.look(ctx)
	if err != nil {
		return c, err
	}
	defer r.close()
	if _, c.Unread, err = r.unread(1, false); err != nil {
		return c, err
	}
	if r.takeInForeign(ctx) {
		if _, c.Unread, err = r.unread(1, false); err != nil {
			return c, err
		}
	}
	// A lease may have been left by a message that is gone.
	held := r.held(r.box.store.now())
	for id := range held {
		if has, err := r.fresh.Has(string(id) + ".json"); err == nil && has && c.Held < c.Unread {
			c.Held++
		}
	}
	c.Unread -= c.Held
	if c.Expired, err = r.expired(r.box.store.now(), held); err != nil {
		return c, err
	}
	c.Expired = min(c.Expired, c.Unread)
	aside, err := r.dir(asideDir, false)
	if err == nil {
		err = ids(aside, func(wire.ID) { c.Aside++ })
	}
	if err != nil {
		return c, err
	}
	cur, err := r.dir("inbox/cur", false)
	if err == nil {
		err = ids(cur, func(wire.ID) { c.Owed++ })
	}
	if err != nil {
		return c, err
	}
	bad, err := r.dir("inbox/bad", false)
	if bad != nil && err == nil {
		err = bad.Names(func(names []string) bool {
			for _, n := range names {
				if !strings.HasSuffix(n, ".reason") && !strings.HasPrefix(n, ".") {
					c.Bad++
				}
			}
			return true
		})
	}
	return c, err
}

// UnreadIDs lists the unread messages by name, oldest first, at most n (all
// when n <= 0), and says how many there are. What was dropped is not taken in.
func (b *Box) UnreadIDs(n int) ([]wire.ID, int, error) {
	r, err := b.enter()
	if err != nil {
		return nil, 0, err
	}
	defer r.close()
	return r.unread(n, false)
}

// OwedIDs lists what waits for an acknowledgement, oldest first, at most n
// (all when n <= 0), and how many there are.
func (b *Box) OwedIDs(n int) ([]wire.ID, int, error) {
	r, err := b.enter()
	if err != nil {
		return nil, 0, err
	}
	defer r.close()
	d, err := r.dir("inbox/cur", false)
	if err != nil {
		return nil, 0, err
	}
	return pick(d, n, false, nil)
}

// Range says which part of a mailbox is walked.
type Range struct {
	Unread, Aside, Owed, Done, Withdrawn, Archive, Sent bool

	// Times asks for Item.Written.
	Times bool

	// Newest walks each place from its newest message back.
	Newest bool

	// Since leaves out days of done, archive and sent into which nothing came
	// after it, by the time of the directory: ids and senders' clocks are not
	// asked. What is older is still among the messages of the other days.
	Since time.Time

	// Limit stops after so many messages; the rest is counted by name, not
	// opened. 0: no limit. Not together with a Keep.
	Limit int

	// Keep accepts a message by its raw text before it is decoded; nil accepts
	// all.
	Keep func(raw []byte) bool
}

// look opens the mailbox after taking in what was dropped into its inbox.
func (b *Box) look(ctx context.Context) (*room, error) {
	r, err := b.enter()
	if err != nil || !r.dropped() {
		return r, err
	}
	r.close()
	b.takeIn(ctx, nil) // what cannot be taken in now stays where it is
	return b.enter()
}

// dropped reports whether there is something in the inbox to be taken in, or
// that cannot be said.
func (r *room) dropped() bool {
	found, claims, err := r.drops(nil)
	return err != nil || len(found)+len(claims) > 0
}

// takeInForeign takes in the foreign names that a listing of new met, once a
// room, and reports whether there were any. No lock may be held.
func (r *room) takeInForeign(ctx context.Context) bool {
	if len(r.foreign) == 0 || r.took {
		return false
	}
	r.took = true
	t, _ := r.box.takeIn(ctx, r.foreign)
	r.bad += t.Bad
	return true
}

// Walk calls f with the messages of a range: unread, set aside, owed, withdrawn, then
// archive, done and sent from the oldest day, each oldest first, until f
// returns false. more is how many messages lie beyond the limit (by name). Bad
// files are passed over and counted. What was dropped into the inbox is taken in
// first when unread messages are asked for.
func (b *Box) Walk(ctx context.Context, rg Range, f func(*Item) bool) (more, bad int, err error) {
	enter := b.enter
	if rg.Unread {
		enter = func() (*room, error) { return b.look(ctx) }
	}
	r, err := enter()
	if err != nil {
		return 0, 0, err
	}
	defer r.close()
	var paths []place
	add := func(on bool, p place) {
		if on {
			paths = append(paths, p)
		}
	}
	add(rg.Unread, place{placeNew, "inbox/new"})
	add(rg.Aside, place{placeAside, asideDir})
	add(rg.Owed, place{placeCur, "inbox/cur"})
	add(rg.Withdrawn, place{placeWithdrawn, "inbox/withdrawn"})
	for _, t := range []struct {
		on   bool
		name string
		top  string
	}{{rg.Archive, placeArchive, "archive/done"}, {rg.Done, placeDone, "inbox/done"}, {rg.Sent, "sent", "sent"}} {
		if !t.on {
			continue
		}
		days, err := r.days(t.top)
		if err != nil {
			return 0, 0, err
		}
		if rg.Newest {
			slices.Reverse(days)
		}
		for _, day := range days {
			if !rg.Since.IsZero() && r.untouched(t.top, day, rg.Since) {
				continue
			}
			paths = append(paths, place{t.name, t.top + "/" + day})
		}
	}
	taken := 0
	for _, p := range paths {
		// Most mailboxes have none, and then no message is asked about.
		leases := p.name == placeAside
		if p.name == placeNew {
			d, err := r.dir(leasesDir, false)
			leases = d != nil && err == nil
		}
		seen := 0
		var last wire.ID
		for {
			want := 0
			if rg.Limit > 0 {
				// At least one, so that the rest is counted.
				want = max(1, rg.Limit-taken) + 2*seen
			}
			list, total, err := r.names(ctx, p, want, rg.Newest)
			if err != nil {
				return more, bad, err
			}
			unlisted := total - len(list)
			for last != "" && len(list) > 0 && (list[0] == last || (list[0] < last) != rg.Newest) {
				list = list[1:]
			}
			for i, id := range list {
				if rg.Limit > 0 && taken >= rg.Limit {
					more += len(list) - i
					break
				}
				seen, last = seen+1, id
				it, err := r.openKept(p, id, rg.Keep)
				var be *BadError
				switch {
				case errors.As(err, &be):
					bad++
				case errors.Is(err, errGone) || it == nil && err == nil:
				case err != nil:
					return more, bad, err
				default:
					taken++
					if rg.Times {
						it.Written, _ = r.written(p, id)
					}
					if leases {
						r.history(it)
					}
					if !f(it) {
						return more, bad, nil
					}
				}
			}
			if unlisted == 0 || len(list) == 0 || rg.Limit > 0 && taken >= rg.Limit {
				more += unlisted
				break
			}
			// Bad files took the place of good ones: on with those behind.
		}
	}
	return more, bad, nil
}

// names is pick for a place; what was dropped into new is taken in first.
func (r *room) names(ctx context.Context, p place, n int, newest bool) ([]wire.ID, int, error) {
	if p.name == placeNew {
		list, total, err := r.unread(n, newest)
		if err == nil && r.takeInForeign(ctx) {
			return r.unread(n, newest)
		}
		return list, total, err
	}
	d, err := r.dir(p.path, false)
	if err != nil {
		return nil, 0, err
	}
	return pick(d, n, newest, nil)
}

// untouched reports whether nothing came into a day's directory after t.
func (r *room) untouched(top, day string, t time.Time) bool {
	d, err := r.dir(top, false)
	if err != nil || d == nil {
		return false
	}
	info, err := d.Lstat(day)
	return err == nil && info.ModTime().Before(t)
}

// written is when a message's file was written: moves and links leave that
// time alone.
func (r *room) written(p place, id wire.ID) (time.Time, error) {
	d, err := r.dir(p.path, false)
	if err != nil || d == nil {
		return time.Time{}, err
	}
	info, err := d.Lstat(string(id) + ".json")
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// openKept is open for messages whose raw text keep accepts; nil, nil for
// others.
func (r *room) openKept(p place, id wire.ID, keep func([]byte) bool) (*Item, error) {
	if keep != nil {
		d, err := r.dir(p.path, false)
		if err != nil || d == nil {
			return nil, err
		}
		raw, err := d.ReadFile(string(id)+".json", wire.MaxFile)
		if err == nil && !keep(raw) {
			return nil, nil
		}
	}
	it, err := r.open(p, id)
	if it != nil && p.name == "sent" {
		it.State = ""
	}
	return it, err
}
