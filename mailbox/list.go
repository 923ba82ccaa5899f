package mailbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Get finds a message by its full id, wherever in the mailbox or its archive it lies,
// without a listing. ErrNotFound when it is nowhere.
func (b *Box) Get(id wire.ID) (*Item, error) {
	// Twice: a message may be put back while we look further on.
	for range 2 {
		for _, p := range b.places(id) {
			if it, err := b.open(p, id); err != errGone {
				if p.state == Unread {
					b.addLease(it, b.claims())
				}
				return it, err
			}
		}
	}
	return nil, cmp.Or(b.Present(), fmt.Errorf("%s: %w", id, ErrNotFound))
}

// Sent finds a message in the index of what the agent sent. The index is not synced:
// what a power cut has torn there is not in it.
func (b *Box) Sent(id wire.ID) (*wire.Message, error) {
	it, err := b.open(place{dir: b.in("sent", id.Day())}, id)
	var bad *BadError
	if err == errGone || errors.As(err, &bad) && bad.Unreadable == nil {
		return nil, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return it.Message, nil
}

// HasAcked reports whether the mailbox's owner has sent the ack of a message, as far
// as the index of what was sent knows: it was put back with MarkUnread.
func (b *Box) HasAcked(id wire.ID) bool {
	ack := wire.Derive("ack", id, b.Address())
	there, err := b.has(place{dir: b.in("sent", ack.Day())}, ack)
	return there && err == nil
}

// Match returns the ids that a fragment fits in the first place that has any: new and
// cur, then done from the newest day, then what was sent. A full id is looked up
// without a listing.
func (b *Box) Match(f wire.Fragment) ([]wire.ID, error) {
	if err := b.Present(); err != nil {
		return nil, err
	}
	if id, ok := f.ID(); ok {
		_, there, err := b.locate(id)
		if !there && err == nil {
			there, err = b.has(place{dir: b.in("sent", id.Day())}, id)
		}
		if !there {
			return nil, err
		}
		return []wire.ID{id}, err
	}
	found, err := b.match(f, b.unread().dir, b.owed().dir)
	for _, top := range []string{b.in("inbox/done"), b.withdrawn().dir, b.in("sent"), b.archived("done")} {
		if len(found) > 0 || err != nil {
			return found, err
		}
		dirs := []string{top}
		if top != b.withdrawn().dir {
			var days []string
			if days, err = b.days(top); err != nil {
				return nil, err
			}
			dirs = nil
			for _, day := range slices.Backward(days) {
				dirs = append(dirs, top+"/"+day)
			}
		}
		for _, dir := range dirs {
			if found, err = b.match(f, dir); len(found) > 0 || err != nil {
				break
			}
		}
	}
	return found, err
}

func (b *Box) match(f wire.Fragment, dirs ...string) ([]wire.ID, error) {
	var found []wire.ID
	for _, dir := range dirs {
		ids, _, err := b.list(dir)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if f.Matches(id) {
				found = append(found, id)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Counts are the numbers of messages that wait in a mailbox. Unread are those that
// nobody has taken under a lease; Leased are those that somebody has.
type Counts struct{ Unread, Leased, Owed, Bad int }

// Count takes in what was dropped and counts by names alone.
func (b *Box) Count(ctx context.Context) (c Counts, err error) {
	unread, err := b.listUnread(ctx)
	if err != nil {
		return c, err
	}
	leased := b.leased(time.Now())
	for _, id := range unread {
		if leased[id] {
			c.Leased++
		}
	}
	c.Unread = len(unread) - c.Leased
	owed, _, err := b.list(b.owed().dir)
	if err != nil {
		return c, err
	}
	c.Owed = len(owed)
	bad, err := b.badNames()
	c.Bad = len(bad)
	return c, err
}

// listUnread lists what is unread, after taking in what was dropped.
func (b *Box) listUnread(ctx context.Context) ([]wire.ID, error) {
	if err := b.Present(); err != nil {
		return nil, err
	}
	b.takeIn(ctx, nil) // what cannot be taken in now stays where it is
	unread, foreign, err := b.list(b.unread().dir)
	if err == nil && b.mayBeDropped(foreign) {
		b.takeIn(ctx, foreign)
		unread, _, err = b.list(b.unread().dir)
	}
	return unread, err
}

// UnreadIDs lists the unread messages by name, oldest first, and the other names in
// new, which may be dropped files. Nothing is taken in.
func (b *Box) UnreadIDs() (ids []wire.ID, foreign []string, err error) {
	if err := b.Present(); err != nil {
		return nil, nil, err
	}
	return b.list(b.unread().dir)
}

// OwedIDs lists what waits for an acknowledgement, oldest first.
func (b *Box) OwedIDs() ([]wire.ID, error) {
	if err := b.Present(); err != nil {
		return nil, err
	}
	ids, _, err := b.list(b.owed().dir)
	return ids, err
}

// Range says which part of a mailbox is walked.
type Range struct {
	Unread, Owed, Done, Withdrawn, Archive, Sent bool

	// Times asks for Item.Written.
	Times bool

	// Newest walks each place from its newest message back.
	Newest bool

	// Since leaves out days of done, archive and sent into which nothing came after
	// it, by the time of the directory: ids and senders' clocks are not asked. What is
	// older is still among the messages of the other days.
	Since time.Time

	// Limit stops after so many messages; the rest is counted by name, not opened. 0:
	// no limit. Not together with a Keep.
	Limit int

	// Keep accepts a message by its raw text before it is decoded; nil accepts all.
	Keep func(raw []byte) bool
}

// Walk calls f with the messages of a range: unread, owed, withdrawn, then archive,
// done and sent from the oldest day, each oldest first, until f returns false. more is
// how many messages lie beyond the limit (by name). Bad files are passed over and
// counted. What was dropped is taken in first when unread messages are asked for.
func (b *Box) Walk(ctx context.Context, rg Range, f func(*Item) bool) (more, bad int, err error) {
	if err := b.Present(); err != nil {
		return 0, 0, err
	}
	places, err := b.placesIn(rg)
	if err != nil {
		return 0, 0, err
	}
	shown := 0
	for _, p := range places {
		var ids []wire.ID
		claimed := claims{}
		if p.state == Unread {
			ids, err = b.listUnread(ctx)
			claimed = b.claims()
		} else {
			ids, _, err = b.list(p.dir)
		}
		if err != nil {
			return more, bad, err
		}
		if rg.Newest {
			slices.Reverse(ids)
		}
		for _, id := range ids {
			if rg.Limit > 0 && shown >= rg.Limit {
				more++
				continue
			}
			it, err := b.openKept(p, id, rg)
			b.addLease(it, claimed)
			var be *BadError
			switch {
			case errors.As(err, &be):
				bad++
			case err == errGone, it == nil && err == nil:
			case err != nil:
				return more, bad, err
			default:
				if shown++; !f(it) {
					return more, bad, nil
				}
			}
		}
	}
	return more, bad, nil
}

func (b *Box) placesIn(rg Range) (places []place, err error) {
	for _, p := range []struct {
		wanted bool
		place
	}{{rg.Unread, b.unread()}, {rg.Owed, b.owed()}, {rg.Withdrawn, b.withdrawn()}} {
		if p.wanted {
			places = append(places, p.place)
		}
	}
	for _, top := range []struct {
		wanted bool
		place
	}{{rg.Archive, place{Done, b.archived("done")}}, {rg.Done, place{Done, b.in("inbox/done")}}, {rg.Sent, place{"", b.in("sent")}}} {
		if !top.wanted {
			continue
		}
		days, err := b.days(top.dir)
		if err != nil {
			return nil, err
		}
		if rg.Newest {
			slices.Reverse(days)
		}
		for _, day := range days {
			dir := top.dir + "/" + day
			if !rg.Since.IsZero() {
				if info, err := b.store.root.Lstat(dir); err == nil && info.ModTime().Before(rg.Since) {
					continue
				}
			}
			places = append(places, place{top.state, dir})
		}
	}
	return places, nil
}

// openKept is open for messages that the range keeps; nil, nil for others.
func (b *Box) openKept(p place, id wire.ID, rg Range) (*Item, error) {
	if rg.Keep != nil {
		raw, err := b.store.root.ReadFile(p.file(id), wire.MaxFile)
		if err == nil && !rg.Keep(raw) {
			return nil, nil
		}
	}
	it, err := b.open(p, id)
	if err == nil && rg.Times {
		if info, err := b.store.root.Lstat(p.file(id)); err == nil {
			it.Written = info.ModTime()
		}
	}
	return it, err
}

// Due lists the messages whose answer was expected before a moment: unread, owed, and
// read since. What has expired or was superseded is left out; some may have their answer.
func (b *Box) Due(ctx context.Context, before time.Time) (due []*Item, err error) {
	superseded := map[wire.ID]wire.Address{}
	rg := Range{Unread: true, Owed: true, Done: true, Since: before.Add(-dueFor), Keep: func(raw []byte) bool {
		return bytes.Contains(raw, []byte(`"due_at"`)) || bytes.Contains(raw, []byte(`"supersedes"`))
	}}
	_, _, err = b.Walk(ctx, rg, func(it *Item) bool {
		if it.Supersedes != "" {
			superseded[it.Supersedes] = it.From
		}
		if !it.DueAt.IsZero() && it.DueAt.Before(before) && !it.Expired(before) {
			due = append(due, it)
		}
		return true
	})
	return slices.DeleteFunc(due, func(it *Item) bool { return superseded[it.ID] == it.From }), err
}

// dueFor is how long after a day's last message the day is searched for overdue
// answers.
const dueFor = 14 * 24 * time.Hour
