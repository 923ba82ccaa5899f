package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

func checkLease(d time.Duration) error {
	if d <= 0 || d > holder.MaxLease {
		return fmt.Errorf("a lease of %s: must be above 0 and at most %s", d, holder.MaxLease)
	}
	return nil
}

// Lease leases the oldest unread message that nobody has, of those that opt selects, or returns a nil Item if there is
// none. Readers and other leases skip the message until MarkAcked, EndLease or the end of d, which is at most MaxLease.
//
// show reports whether the member received the message. While it runs the lease is only ten seconds long, in case it is
// killed; then the lease gets its full length.
func Lease(ctx context.Context, b *maildir.Box, by wire.Address, d time.Duration, opt inbox.ReadOptions, show func(*wire.Item, wire.Lease) (received bool, err error)) (*wire.Item, error) {
	if err := checkLease(d); err != nil {
		return nil, err
	}
	drop.Ingest(ctx, b, drop.Patience) // what cannot be ingested now stays where it is
	opt.Limit = 1
	var group Claim
	lease := wire.Lease{By: by}
	err := b.Locked(ctx, "reader", func() error {
		now := time.Now() // after the wait for the lock
		lease.Until = holder.Moment(now.Add(d))
		held, err := b.Held()
		if err != nil {
			return err
		}
		return group.take(b, holder.New(holder.Lease, b.Leaseholder(by), "", now), opt, held, taken(held, now, b.IsRunning()))
	})
	if err != nil || len(group.Items) == 0 {
		return nil, err
	}
	it := group.Items[0]
	received, showErr := show(it, lease)
	ctx = context.WithoutCancel(ctx) // the message was shown
	if !received {
		group.Release(ctx)
		return nil, showErr
	}
	err = group.change(ctx, func(_ wire.ID, h holder.Holder) holder.Holder { return h.Shown(lease.Until) })
	if _, isMine := group.left[it.ID]; !isMine && err == nil {
		err = maildir.NotHeld(it.ID)
	}
	return it, errors.Join(showErr, err)
}

// taken returns the messages that nobody may lease: somebody has them, or they were set aside.
func taken(held maildir.Held, now time.Time, isRunning bool) maildir.Held {
	all := held.Live(now, isRunning)
	for id, h := range held {
		if h.Kind == holder.Aside {
			all[id] = h
		}
	}
	return all
}

// last returns who has an unread message, or had it last; the zero Holder once it is read.
func last(b *maildir.Box, id wire.ID) (holder.Holder, error) {
	d, isThere, err := b.Locate(id)
	if err != nil || !isThere || d.State != wire.Unread {
		return holder.Holder{}, err
	}
	return d.Holder(), nil
}

// LastLease returns the live or last lease of an unread message.
func LastLease(b *maildir.Box, id wire.ID) (lease wire.Lease, ok bool, err error) {
	h, err := last(b, id)
	if h.Kind != holder.Lease {
		return lease, false, err
	}
	return b.LeaseOf(h), true, nil
}

// HasTaken reports whether a member has leased a message of a shared inbox, also under a lease that has expired, or has
// finished it under one. If nothing says who finished it, anybody may have.
func HasTaken(b *maildir.Box, id wire.ID, by wire.Address) bool {
	there := b.AddressThere(by)
	if shared, _ := Shared(b); !shared || there.Team != b.Store().Team || there.Host != "" {
		return false
	}
	if last, isUnread, _ := LastLease(b, id); isUnread {
		return last.By == by
	}
	isEnd := func(e *wire.Event) bool { return e.Kind == wire.EventAcked && e.MessageID() == id }
	before := id.Time().Add(-24 * time.Hour) // clocks differ
	events, _ := b.Log().Tail(func(e *wire.Event) bool { return isEnd(e) || e.At.Before(before) })
	if len(events) > 0 && isEnd(&events[0]) {
		return events[0].Field(wire.FieldBy) == there.String()
	}
	it, err := b.OpenAnywhere(id)
	return err == nil && it.State == wire.Done
}

// RenewLease extends a lease to d from now, at most MaxLease, and never shortens it. An expired lease is renewed too,
// unless somebody else has leased the message.
func RenewLease(ctx context.Context, b *maildir.Box, id wire.ID, by wire.Address, d time.Duration) (until time.Time, err error) {
	if err := checkLease(d); err != nil {
		return until, err
	}
	err = changeLease(ctx, b, id, by, func(h holder.Holder) holder.Holder {
		now := time.Now()
		if end := now.Add(d); end.After(h.Until) || !h.IsLiveLease(now) { // the clock was set back
			times := h.Times
			h = holder.New(holder.Lease, h.Who, "", now).Shown(end)
			h.Times = times
		}
		until = h.Until
		return h
	})
	return until, err
}

// EndLease gives a message back before the lease ends, and logs message_returned, with these fields and their values, for a
// runner that waits for it.
func EndLease(ctx context.Context, b *maildir.Box, id wire.ID, by wire.Address, fields ...string) error {
	err := changeLease(ctx, b, id, by, func(h holder.Holder) holder.Holder {
		h.Who = ""
		return h.Ended()
	})
	if err != nil {
		return err
	}
	e := maildir.Event(wire.SourceCLI, wire.EventReturned, id).With(wire.FieldBy, by.String())
	for f := range slices.Chunk(fields, 2) {
		e = e.With(f[0], f[1])
	}
	return b.LogEvents(ctx, e)
}

func changeLease(ctx context.Context, b *maildir.Box, id wire.ID, by wire.Address, change func(holder.Holder) holder.Holder) error {
	return b.Locked(ctx, "reader", func() error {
		h, err := last(b, id)
		switch {
		case err != nil:
			return err
		case h.Kind != holder.Lease || h.Who != b.Leaseholder(by):
			return cmp.Or(b.CheckLeaseholder(h, id, by), maildir.NotHeld(id))
		}
		return b.HandTo(id, h, change(h))
	})
}

// Shared reports whether other members may lease messages of this inbox.
func Shared(b *maildir.Box) (bool, error) { return b.Store().Dir().Exists(b.In("shared")) }

// Share lets other members lease messages of this inbox.
func Share(b *maildir.Box) error {
	if err := b.CheckPresent(); err != nil {
		return err
	}
	return b.Store().Dir().Replace(b.In("shared"), nil, true)
}

// IsAnyFree reports whether a mailbox has an unread message that nobody has. Dropped files are ingested first.
func IsAnyFree(ctx context.Context, b *maildir.Box) (bool, error) {
	drop.Ingest(ctx, b, 0) // what cannot be ingested now stays where it is
	ids, err := b.UnreadIDs()
	if len(ids) == 0 {
		return false, err
	}
	held, err := b.Held()
	live := taken(held, time.Now(), b.IsRunning())
	isFree := func(id wire.ID) bool { _, isHeld := live[id]; return !isHeld }
	return slices.ContainsFunc(ids, isFree), err
}

// LeasedBy lists the unread messages of a mailbox that a member has leased, and whose lease has not ended.
func LeasedBy(b *maildir.Box, by wire.Address) (ids []wire.ID, err error) {
	held, err := b.Held()
	for id, h := range held {
		if h.Who == b.Leaseholder(by) && h.IsLiveLease(time.Now()) {
			ids = append(ids, id)
		}
	}
	return ids, err
}
