package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/wire"
)

// HoldOptions say which message is taken, by whom, and for how long.
type HoldOptions struct {
	By    wire.Address
	For   time.Duration            // at most MaxLease
	IDs   []wire.ID                // one of these only; nil: any
	Match func(*wire.Message) bool // nil: all
}

// Hold is a message that was taken under a lease.
type Hold struct {
	*Item           // who had it before is in Takings
	Key   wire.ID   // of this taking
	Until time.Time // as it is when nobody renews it

	box *Box
	by  wire.Address
}

// ErrNotHeld says that a message is not in one's hands: it was never taken, or
// the lease ran out and it went another way.
var ErrNotHeld = errors.New("is not in your hands")

// LeasedError says that somebody else holds a message under a lease.
type LeasedError struct {
	ID    wire.ID
	By    wire.Address
	Until time.Time
}

func (e *LeasedError) Error() string {
	return fmt.Sprintf("message %s is in the hands of %s, whose lease ends in %s", e.ID.Short(6), e.By, max(0, time.Until(e.Until).Round(time.Second)))
}

// Hold takes the oldest unread message that is in nobody's hands and holds it
// under a lease. It stays in new, where everybody who reads or takes passes it
// over until the lease ends: by Finish, by GiveBack, or by running out, of which
// nobody need know. A message that was taken MaxTries times and never finished
// is set aside first, and the next one is taken.
//
// With a show, the message is shown before it is had: a taker whose output was
// not taken, or who was killed showing, has not got it. While it is shown, for
// at most ten seconds, others pass it over; no lock is held. nil, nil: there is
// none. *LeasedError or ErrNotHeld: showing took so long that it went another way.
func (b *Box) Hold(ctx context.Context, opt HoldOptions, show func(*Hold) (taken bool, err error)) (*Hold, error) {
	if opt.For <= 0 || opt.For > MaxLease {
		return nil, fmt.Errorf("a lease of %s: it may be up to %s", opt.For, MaxLease)
	}
	if r, err := b.look(ctx); err != nil { // takes in what was dropped
		return nil, err
	} else {
		r.close()
	}
	h := &Hold{Key: wire.NewID(), box: b, by: opt.By}
	var foreign []string
	take := func(stop bool) error {
		return b.underLease(ctx, func(r *room) error {
			err := h.take(r, opt, show != nil, stop)
			foreign = r.foreign
			return err
		})
	}
	err := take(true)
	if err == errForeign { // taken in without the lock
		b.takeIn(ctx, foreign)
		err = take(false)
	}
	if err != nil || h.Item == nil {
		return nil, err
	}
	if show == nil {
		return h, nil
	}
	taken, showErr := show(h)
	// What was shown counts, whoever gave up meanwhile.
	err = h.box.underLease(context.WithoutCancel(ctx), func(r *room) error { return h.shown(r, opt, taken) })
	switch {
	case err != nil:
		return h, errors.Join(showErr, err)
	case !taken:
		return nil, showErr
	}
	return h, showErr
}

// take is the choice of Hold, under the reader's lock.
func (h *Hold) take(r *room, opt HoldOptions, showing, stop bool) error {
	now := r.box.store.now()
	held, unknown, err := r.tidy(now)
	if err != nil {
		return err
	}
	choice := ReadOptions{IDs: opt.IDs, Match: opt.Match, Limit: 1, Skip: held}
	typed, handed, err := r.inHands(now)
	if err != nil {
		return err
	}
	choice.skip(typed)
	choice.skip(handed)
	batch, err := r.chooseUnread(choice, r.setAside, stop && opt.IDs == nil)
	if err == nil && len(batch.Items) == 0 {
		for _, why := range unknown { // one of these may be all that there is
			return why
		}
	}
	if err != nil || len(batch.Items) == 0 {
		return err
	}
	h.Item = r.history(batch.Items[0])
	t := &Takings{}
	if h.Takings != nil {
		for _, k := range h.Takings.Takes {
			if !k.Showing { // who did not get it leaves no trace
				t.Takes = append(t.Takes, k)
			}
		}
	}
	k := Taking{By: opt.By, Key: h.Key, At: now.UTC(), Renewed: now.UTC(), For: opt.For, Showing: showing}
	h.Until = k.Until()
	t.Takes = append(t.Takes, k)
	if err := r.setTakings(leasesDir, h.ID, t); err != nil {
		h.Item = nil
		return err
	}
	if n := len(t.Takes); n > 1 && t.Takes[n-2].Open() {
		r.freed(h.ID, &t.Takes[n-2]) // it ran out
	}
	if !showing {
		r.hadBy(h.ID, &k, t.Tries())
	}
	return nil
}

// shown makes the message the taker's, or nobody's.
func (h *Hold) shown(r *room, opt HoldOptions, taken bool) error {
	now := r.box.store.now().UTC()
	t, k, err := r.mine(h.ID, h.by, h.Key, now)
	switch {
	case err != nil && !taken:
		return nil // whose it is now is not ours
	case err != nil:
		return err
	case !taken:
		t.Takes = t.Takes[:len(t.Takes)-1]
	default:
		k.Showing, k.Renewed, k.For = false, now, opt.For
		h.Until = k.Until()
	}
	err = r.setTakings(leasesDir, h.ID, t)
	if err == nil && taken {
		r.hadBy(h.ID, k, t.Tries())
	}
	return err
}

// mine is the taking of a message that is somebody's to end or to renew: the one
// that holds, or one that ran out and that nobody took over. Else *LeasedError,
// or ErrNotHeld.
func (r *room) mine(id wire.ID, by wire.Address, key wire.ID, now time.Time) (*Takings, *Taking, error) {
	unread, err := r.fresh.Has(string(id) + ".json")
	if err != nil {
		return nil, nil, err
	}
	notHeld := fmt.Errorf("message %s %w", id.Short(6), ErrNotHeld)
	if !unread {
		return nil, nil, notHeld
	}
	t, err := r.takings(leasesDir, id)
	if err != nil {
		return nil, nil, err
	}
	k := t.Last()
	switch {
	case k == nil || !k.Ended.IsZero():
		return nil, nil, notHeld
	case k.is(by, key):
		return t, k, nil
	case k.Holds(now):
		return nil, nil, &LeasedError{id, k.By, k.Until()}
	}
	return nil, nil, notHeld
}

// Renew has the lease of a message run for that long from now on, and never
// makes it shorter. by is who took it; a key names the very taking, none is
// whichever of theirs it is. One that ran out and that nobody took over is
// renewed as well. *LeasedError or ErrNotHeld for what is not theirs.
func (b *Box) Renew(ctx context.Context, id wire.ID, by wire.Address, key wire.ID, d time.Duration) (until time.Time, err error) {
	if d <= 0 || d > MaxLease {
		return until, fmt.Errorf("a lease of %s: it may be up to %s", d, MaxLease)
	}
	err = b.underReader(ctx, func(r *room) error {
		now := b.store.now().UTC()
		t, k, err := r.mine(id, by, key, now)
		if err != nil {
			return err
		}
		if until = k.Until(); k.Holds(now) && !now.Add(d).After(until) {
			return nil
		}
		k.Renewed, k.For = now, d
		until = k.Until()
		return r.setTakings(leasesDir, id, t)
	})
	return until, err
}

// GiveBack ends a taking: the message is in nobody's hands, and how that came
// stands in its history ("": given back). It was a try all the same; after
// MaxTries the message is set aside. Who may is as for Renew.
func (b *Box) GiveBack(ctx context.Context, id wire.ID, by wire.Address, key wire.ID, how string) error {
	return b.underLease(ctx, func(r *room) error {
		now := b.store.now().UTC()
		t, k, err := r.mine(id, by, key, now)
		if err != nil {
			return err
		}
		k.Ended, k.How = now, how
		if err := r.setTakings(leasesDir, id, t); err != nil {
			return err
		}
		r.freed(id, k)
		_, _, err = r.tidy(now)
		return err
	})
}

// Finish is Settle for who holds the message under a lease: new to done, and
// the lease ends. Who may is as for Renew, so the same again is ErrNotHeld. The
// event message_acked says by whom.
func (b *Box) Finish(ctx context.Context, id wire.ID, by wire.Address, key wire.ID, delivered bool) error {
	return b.settled(ctx, id, delivered, by.String(), func(r *room, _ place) error {
		_, _, err := r.mine(id, by, key, b.store.now())
		return err
	})
}

// Renew is Box.Renew of this taking.
func (h *Hold) Renew(ctx context.Context, d time.Duration) error {
	until, err := h.box.Renew(ctx, h.ID, h.by, h.Key, d)
	if err == nil {
		h.Until = until
	}
	return err
}

// GiveBack is Box.GiveBack of this taking.
func (h *Hold) GiveBack(ctx context.Context, how string) error {
	return h.box.GiveBack(ctx, h.ID, h.by, h.Key, how)
}

// ownersTo reports whether a message in new is its mailbox's owner's to move,
// since nobody else holds it.
func (r *room) ownersTo(id wire.ID) error {
	t, err := r.takings(leasesDir, id)
	if err != nil {
		return err
	}
	if k := t.Holder(r.box.store.now()); k != nil && k.By != r.box.Address() {
		return &LeasedError{id, k.By, k.Until()}
	}
	return nil
}

// Shared reports whether other members may take from this inbox.
func (b *Box) Shared() (bool, error) {
	r, err := b.enter()
	if err != nil {
		return false, err
	}
	defer r.close()
	d, err := r.dir(leasesDir, false)
	if d == nil || err != nil {
		return false, err
	}
	return d.Has(sharedFile)
}

// Share says whether other members may take from this inbox.
func (b *Box) Share(ctx context.Context, yes bool) error {
	return b.underReader(ctx, func(r *room) error {
		d, err := r.dir(leasesDir, yes)
		if d == nil || err != nil {
			return err
		}
		if !yes {
			return d.Remove(sharedFile)
		}
		if has, err := d.Has(sharedFile); has || err != nil {
			return err
		}
		return d.Replace(sharedFile, nil, true)
	})
}

// dropLease forgets who took a message. Absent is fine.
func (r *room) dropLease(dir string, id wire.ID) error { return r.setTakings(dir, id, nil) }

// Leases tells who took the unread messages of this mailbox, those that anybody
// took. No message is opened.
func (b *Box) Leases() (map[wire.ID]*Takings, error) {
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer r.close()
	ids, err := r.leased(leasesDir)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	out := map[wire.ID]*Takings{}
	for _, id := range ids {
		t, err := r.takings(leasesDir, id)
		if err != nil {
			return nil, err
		}
		unread, err := r.fresh.Has(string(id) + ".json")
		if err != nil {
			return nil, err
		}
		if unread && t != nil {
			out[id] = t
		}
	}
	return out, nil
}
