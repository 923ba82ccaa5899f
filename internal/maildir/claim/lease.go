package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

func checkLease(d time.Duration) error {
	if d <= 0 || d > claimfile.MaxLease {
		return fmt.Errorf("a lease of %s: must be above 0 and at most %s", d, claimfile.MaxLease)
	}
	return nil
}

// Lease leases the oldest unread message that nobody has claimed, of those that opt selects, or returns a nil Item if
// there is none. The message stays in new, where readers and other leases skip it until MarkAcked, EndLease or the end
// of d, which is at most MaxLease.
//
// show reports whether the member received the message. While it runs the lease is only ten seconds long, in case it is
// killed; then the lease gets its full length.
func Lease(ctx context.Context, b *maildir.Box, by wire.Address, d time.Duration, opt inbox.ReadOptions, show func(*maildir.Item, maildir.Lease) (received bool, err error)) (*maildir.Item, error) {
	if err := checkLease(d); err != nil {
		return nil, err
	}
	drop.Ingest(ctx, b, drop.Patience) // what cannot be ingested now stays where it is
	opt.Limit = 1
	var group Claim
	lease := maildir.Lease{By: by}
	err := b.Update(ctx, func(t *maildir.Tx) error {
		now := claimfile.Moment(time.Now()) // after the wait for the lock
		lease.Until = now.Add(d)
		mine := claimfile.Entry{Owner: b.LeaseOwner(by), At: now, Until: now.Add(min(d, answerTime))}
		return group.take(t, mine, opt, t.Claims.Live(now, b.IsRunning()))
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
	isMine := false
	err = group.update(ctx, func(_ wire.ID, c claimfile.Entry) claimfile.Entry {
		isMine, c.Until = true, lease.Until
		return c
	})
	if err == nil && !isMine {
		err = maildir.NotHeld(it.ID)
	}
	return it, errors.Join(showErr, err)
}

// LastLease returns the live or last lease of an unread message.
func LastLease(b *maildir.Box, id wire.ID) (last maildir.Lease, ok bool, err error) {
	all, err := b.ReadClaims()
	if c := all[id]; c.Owner.Kind == claimfile.Lease {
		if ok, err = b.Has(b.Unread(), id); ok {
			last = b.LeaseOf(c)
		}
	}
	return last, ok, err
}

// HasTaken reports whether a member has leased a message of a shared inbox, also under a lease that has expired, or has
// finished it under one. If nothing says who finished it, anybody may have.
func HasTaken(b *maildir.Box, id wire.ID, by wire.Address) bool {
	if shared, _ := Shared(b); !shared || by.Team != b.Store().Team || by.Host != "" {
		return false
	}
	if last, isUnread, _ := LastLease(b, id); isUnread {
		return last.By == by
	}
	isEnd := func(e *wire.Event) bool { return e.Kind == wire.EventAcked && e.MessageID() == id }
	before := id.Time().Add(-24 * time.Hour) // clocks differ
	events, _ := b.Log().Tail(func(e *wire.Event) bool { return isEnd(e) || e.At.Before(before) })
	if len(events) > 0 && isEnd(&events[0]) {
		return events[0].Field(wire.FieldBy) == by.String()
	}
	it, err := b.OpenAnywhere(id)
	return err == nil && it.State == maildir.Done
}

// RenewLease extends a lease to d from now, at most MaxLease, and never shortens it. An expired lease is renewed too,
// unless somebody else has leased the message.
func RenewLease(ctx context.Context, b *maildir.Box, id wire.ID, by wire.Address, d time.Duration) (until time.Time, err error) {
	if err := checkLease(d); err != nil {
		return until, err
	}
	err = changeLease(ctx, b, id, by, func(c *claimfile.Entry) {
		now := claimfile.Moment(time.Now())
		if end := now.Add(d); end.After(c.Until) || !c.IsLiveLease(now) { // the clock was set back
			c.At, c.Until = now, end
		}
		until = c.Until
	})
	return until, err
}

// EndLease gives a message back before the lease ends, and logs message_returned for a runner that waits for it.
func EndLease(ctx context.Context, b *maildir.Box, id wire.ID, by wire.Address) error {
	err := changeLease(ctx, b, id, by, func(c *claimfile.Entry) {
		c.Owner, c.Until = claimfile.Owner{Kind: claimfile.Lease}, claimfile.Moment(time.Now())
	})
	if err != nil {
		return err
	}
	return b.LogEvents(ctx, maildir.Event(wire.SourceCLI, wire.EventReturned, id).With(wire.FieldBy, by.String()))
}

func changeLease(ctx context.Context, b *maildir.Box, id wire.ID, by wire.Address, change func(*claimfile.Entry)) error {
	return b.Update(ctx, func(t *maildir.Tx) error {
		c := t.Claims[id]
		if isUnread, err := b.Has(b.Unread(), id); err != nil {
			return err
		} else if !isUnread {
			c = claimfile.Entry{} // what is left of it
		}
		if c.Owner != b.LeaseOwner(by) {
			return cmp.Or(b.CheckLeaseholder(c, id, by), maildir.NotHeld(id))
		}
		change(&c)
		t.Claims[id] = c
		return nil
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

// IsAnyFree reports whether a mailbox has an unread message that nobody has claimed. Dropped files are ingested first.
func IsAnyFree(ctx context.Context, b *maildir.Box) (bool, error) {
	drop.Ingest(ctx, b, 0) // what cannot be ingested now stays where it is
	ids, err := b.UnreadIDs()
	if len(ids) == 0 {
		return false, err
	}
	claimed := b.Claims().Live(claimfile.Moment(time.Now()), b.IsRunning())
	isFree := func(id wire.ID) bool { _, isClaimed := claimed[id]; return !isClaimed }
	return slices.ContainsFunc(ids, isFree), err
}

// Held lists the unread messages of a mailbox that a member has leased, and whose lease has not ended.
func Held(b *maildir.Box, by wire.Address) (ids []wire.ID, err error) {
	all, err := b.ReadClaims()
	for id, c := range all {
		if c.Owner != b.LeaseOwner(by) || !c.IsLiveLease(claimfile.Moment(time.Now())) {
			continue
		}
		isUnread, failed := b.Has(b.Unread(), id)
		if err = cmp.Or(err, failed); isUnread {
			ids = append(ids, id)
		}
	}
	return ids, err
}
