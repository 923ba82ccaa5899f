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
				if err == nil && p.state == Unread {
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
	for _, rg := range []Range{{Unread: true, Owed: true}, {Done: true}, {Withdrawn: true}, {Sent: true}, {Archive: true}} {
		rg.Newest = true
		places, err := b.placesIn(rg)
		if err != nil {
			return nil, err
		}
		var found []wire.ID
		for _, p := range places {
			ids, _, err := b.list(p.dir)
			if err != nil {
				return nil, err
			}
			found = append(found, slices.DeleteFunc(ids, func(id wire.ID) bool { return !f.Matches(id) })...)
			if len(found) > 0 && p.state != Unread {
				break
			}
		}
		if len(found) > 0 {
			slices.Sort(found)
			return slices.Compact(found), nil
		}
	}
	return nil, nil
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
	claims, now := b.claims(), time.Now()
	for _, id := range unread {
		if of := claims[id]; of.isLease() && of.isLive(now, false) {
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

// listUnread lists what is unread, after taking in what was dropped. What cannot be
// taken in now stays where it is.
func (b *Box) listUnread(ctx context.Context) ([]wire.ID, error) {
	b.TakeIn(ctx)
	unread, _, err := b.UnreadIDs()
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
			var be *BadError
			switch {
			case errors.As(err, &be):
				bad++
			case err == errGone:
			case err != nil:
				return more, bad, err
			default:
				b.addLease(it, claimed)
				if shown++; !f(it) {
					return more, bad, nil
				}
			}
		}
	}
	return more, bad, nil
}

// openKept is open for a message that the range keeps; errGone for another.
func (b *Box) openKept(p place, id wire.ID, rg Range) (*Item, error) {
	data, err := b.readFile(p, id)
	if err != nil {
		return nil, err
	}
	if rg.Keep != nil && !rg.Keep(data) {
		return nil, errGone
	}
	it, err := b.decode(p, id, data)
	if err == nil && rg.Times {
		if info, err := b.store.root.Lstat(p.file(id)); err == nil {
			it.Written = info.ModTime()
		}
	}
	return it, err
}

// placesIn are the places of a range.
func (b *Box) placesIn(rg Range) (places []place, err error) {
	add := func(wanted bool, p place) {
		if wanted {
			places = append(places, p)
		}
	}
	addDays := func(wanted bool, top place) {
		if !wanted || err != nil {
			return
		}
		var days []string
		if days, err = b.days(top.dir); rg.Newest {
			slices.Reverse(days)
		}
		for _, day := range days {
			dir := top.dir + "/" + day
			info, err := b.store.root.Lstat(dir)
			add(err != nil || !info.ModTime().Before(rg.Since), place{top.state, dir})
		}
	}
	add(rg.Unread, b.unread())
	add(rg.Owed, b.owed())
	add(rg.Withdrawn, b.withdrawn())
	addDays(rg.Archive, place{Done, b.archived("done")})
	addDays(rg.Done, place{Done, b.in("inbox/done")})
	addDays(rg.Sent, place{"", b.in("sent")})
	return places, err
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
