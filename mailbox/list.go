package mailbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Get finds a message by its full id, wherever in the mailbox or its archive it lies, without a listing.
// ErrNotFound when it is nowhere.
func (b *Box) Get(id wire.ID) (it *Item, err error) {
	err = b.find(id, func(p place) (err error) {
		if it, err = b.open(p, id, nil); err == nil && p.state == Unread {
			b.addLease(it, b.claims())
		}
		return err
	})
	if err == nil {
		b.addNewer(it, b.newer())
	}
	return it, err
}

// find calls f with the places where a message may lie, until it is there.
func (b *Box) find(id wire.ID, f func(place) error) error {
	for range 2 { // it may be put back while we look further on
		for _, p := range b.places(id) {
			if err := f(p); !errors.Is(err, ErrNotFound) {
				return err
			}
		}
	}
	return cmp.Or(b.Present(), notFound(id))
}

func notFound(id wire.ID) error { return fmt.Errorf("%s: %w", id, ErrNotFound) }

// Sent finds a message in the index of what the agent sent. The index is not synced: what a power cut has
// torn there is not in it.
func (b *Box) Sent(id wire.ID) (*wire.Message, error) {
	it, err := b.open(b.sent(id), id, nil)
	if bad, ok := errors.AsType[*BadError](err); ok && bad.Unreadable == nil {
		err = notFound(id)
	}
	if err != nil {
		return nil, err
	}
	return it.Message, nil
}

// HasAcked reports whether the mailbox's owner has sent the ack of a message, as far as the index of what
// was sent knows: it was put back with MarkUnread.
func (b *Box) HasAcked(id wire.ID) bool {
	ack := wire.AckID(id, b.Address())
	there, err := b.has(b.sent(ack), ack)
	return there && err == nil
}

// Match returns the ids that a fragment fits in the first place that has any: new and cur, then done from
// the newest day, then what was withdrawn, archived and sent. A full id is looked up without a listing.
func (b *Box) Match(f wire.Fragment) (found []wire.ID, err error) {
	if id, ok := f.ID(); ok {
		_, there, err := b.locate(id)
		if !there && err == nil {
			there, err = b.has(b.sent(id), id)
		}
		if there {
			found = []wire.ID{id}
		}
		return found, err
	}
	all := everywhere
	all.Sent, all.Newest = true, true
	err = b.listPlaces(all, func(p place, ids []wire.ID) bool {
		found = append(found, slices.DeleteFunc(ids, func(id wire.ID) bool { return !f.Matches(id) })...)
		return len(found) == 0 || p.state == Unread
	})
	if len(found) > 0 {
		err = nil // a place that cannot be read does not hide it
	}
	slices.Sort(found)
	return found, err
}

// Range says which part of a mailbox is walked.
type Range struct {
	Unread, Owed, Done, Withdrawn, Archive, Sent bool

	Newest bool                  // walks from the newest day and message of each part back
	Limit  int                   // opens so many messages (0: all) and counts the rest by name; not with Keep
	Keep   func(raw []byte) bool // accepts a message by its text before it is decoded; nil: all
	Taken  *TakenIn              // if set: what became of dropped files, which are taken in before unread mail is listed

	// Since leaves out days of done, archive and sent into which nothing came after it, by the time of the
	// directory: ids and senders' clocks are not asked. Older messages are still among those of other days.
	Since time.Time
}

// everywhere is all of a mailbox, but for the index of what its owner sent.
var everywhere = Range{Unread: true, Owed: true, Done: true, Withdrawn: true, Archive: true}

// listPlaces calls f with the places of a range, in the order in which messages move, and with the messages that lie
// there, until it returns false. A place that cannot be read hides no other.
func (b *Box) listPlaces(rg Range, f func(place, []wire.ID) bool) (errs error) {
	for _, part := range []struct {
		isWanted, hasDays bool
		place
	}{
		{rg.Unread, false, b.unread()}, {rg.Owed, false, b.owed()}, {rg.Done, true, b.allDone()},
		{rg.Withdrawn, false, b.withdrawn()}, {rg.Archive, true, b.archive()}, {rg.Sent, true, b.allSent()},
	} {
		if !part.isWanted {
			continue
		}
		places, err := []place{part.place}, error(nil)
		if part.hasDays {
			places, err = b.days(part.place, rg.Since)
		}
		errs = errors.Join(errs, err)
		if rg.Newest {
			slices.Reverse(places)
		}
		for _, p := range places {
			ids, err := b.list(p)
			errs = errors.Join(errs, err)
			if rg.Newest {
				slices.Reverse(ids)
			}
			if !f(p, ids) {
				return errs
			}
		}
	}
	return errs
}

// Walk calls f with the messages of a range, by parts in the order in which messages move, each oldest first, until
// f returns false. more is how many messages lie beyond the limit (by name). Bad files are passed over and counted,
// and a part that cannot be read hides no other: the error is returned at the end. What was dropped is taken in first
// when unread messages are asked for.
func (b *Box) Walk(ctx context.Context, rg Range, f func(*Item) bool) (more, bad int, err error) {
	if err := b.Present(); err != nil {
		return 0, 0, err
	}
	if rg.Unread {
		taken, _ := b.TakeIn(ctx)
		if rg.Taken != nil {
			*rg.Taken = taken
		}
	}
	shown := 0
	listErr := b.listPlaces(rg, func(p place, ids []wire.ID) bool {
		if rg.Limit > 0 && shown == rg.Limit {
			more += len(ids)
			return true
		}
		for i, it := range b.openEach(p, ids, rg.Keep, func(*BadError) { bad++ }, &err) {
			if !f(it) {
				return false
			}
			if shown++; shown == rg.Limit {
				more = len(ids) - i - 1
				break
			}
		}
		return err == nil
	})
	return more, bad, cmp.Or(err, listErr)
}

// IDs lists the messages of a range by name, in the order of Walk: nothing is opened or taken in. With a
// limit no further day is listed once there are so many.
func (b *Box) IDs(rg Range) (ids []wire.ID, err error) {
	if err := b.Present(); err != nil {
		return nil, err
	}
	err = b.listPlaces(rg, func(_ place, some []wire.ID) bool {
		ids = append(ids, some...)
		return rg.Limit == 0 || len(ids) < rg.Limit
	})
	return ids, err
}

// openEach opens messages of a place, those that keep accepts (nil: all), and gives each with its number. What has
// moved on is passed over, and what is bad goes to isBad; any other error ends it, and is in failed.
func (b *Box) openEach(p place, ids []wire.ID, keep func([]byte) bool, isBad func(*BadError), failed *error,
) iter.Seq2[int, *Item] {
	return func(yield func(int, *Item) bool) {
		var claimed claims
		if p.state == Unread {
			claimed = b.claims()
		}
		newer := b.newer()
		for i, id := range ids {
			it, err := b.open(p, id, keep)
			bad, isOneBad := errors.AsType[*BadError](err)
			switch {
			case isOneBad:
				isBad(bad)
			case errors.Is(err, ErrNotFound):
			case err != nil:
				*failed = err
				return
			default:
				b.addLease(it, claimed)
				b.addNewer(it, newer)
				if !yield(i, it) {
					return
				}
			}
		}
	}
}

// Counts are the numbers of messages that wait in a mailbox. Unread are those that nobody has taken under
// a lease; Leased are those that somebody has.
type Counts struct{ Unread, Leased, Owed, Bad int }

// Count takes in what was dropped and counts by names alone, with an error what it can.
func (b *Box) Count(ctx context.Context) (c Counts, err error) {
	b.TakeIn(ctx) // what cannot be taken in now stays where it is
	unread, err := b.UnreadIDs()
	claims, now := b.claims(), time.Now()
	for _, id := range unread {
		if claims[id].isLeaseAt(now) {
			c.Leased++
		}
	}
	owed, err2 := b.OwedIDs()
	bad, err3 := b.badNames()
	c.Unread, c.Owed, c.Bad = len(unread)-c.Leased, len(owed), len(bad)
	return c, cmp.Or(err, err2, err3)
}

// UnreadIDs lists the unread messages by name, oldest first. Nothing is taken in.
func (b *Box) UnreadIDs() ([]wire.ID, error) { return b.IDs(Range{Unread: true}) }

// OwedIDs lists what waits for an acknowledgement, oldest first.
func (b *Box) OwedIDs() ([]wire.ID, error) { return b.IDs(Range{Owed: true}) }

// dueFor is how long after a day's last message the day is searched for overdue answers.
const dueFor = 14 * 24 * time.Hour

// Due lists the messages whose answer was expected before a moment: unread, owed, and read since. What
// has expired or was superseded is left out; some may have their answer.
func (b *Box) Due(ctx context.Context, before time.Time) (due []*Item, err error) {
	rg := Range{Unread: true, Owed: true, Done: true, Since: before.Add(-dueFor), Keep: func(raw []byte) bool {
		return bytes.Contains(raw, []byte(`"due_at"`))
	}}
	_, _, err = b.Walk(ctx, rg, func(it *Item) bool {
		if !it.DueAt.IsZero() && it.DueAt.Before(before) && !it.Expired(before) && it.SupersededBy == "" {
			due = append(due, it)
		}
		return true
	})
	return due, err
}
