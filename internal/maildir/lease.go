package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// MaxLease is the longest lease.
const MaxLease = 24 * time.Hour

// ErrNotHeld says that a member wants to finish, renew or give back a message that it has not leased, or whose lease
// ran out.
var ErrNotHeld = errors.New("is not yours: nobody took it, or the lease ran out")

func checkLease(d time.Duration) error {
	if d <= 0 || d > MaxLease {
		return fmt.Errorf("a lease of %s: must be above 0 and at most %s", d, MaxLease)
	}
	return nil
}

func notHeld(id wire.ID) error { return fmt.Errorf("message %s %w", id.Short(6), ErrNotHeld) }

// Lease says who has an unread message under a lease, and until when.
type Lease struct {
	By    wire.Address
	Until time.Time
}

// LeasedError says that somebody else has leased a message.
type LeasedError struct {
	ID wire.ID
	Lease
}

func (e *LeasedError) Error() string {
	return fmt.Sprintf("message %s was taken by %s until %s", e.ID.Short(6), e.By, letter.Stamp(e.Until))
}

// Lease leases the oldest unread message that nobody has claimed, of those that opt selects, or returns a nil Item if
// there is none. The message stays in new, where readers and other leases skip it until MarkAcked, EndLease or the end
// of d, which is at most MaxLease.
//
// show reports whether the member received the message. While it runs the lease is only ten seconds long, in case it is
// killed; then the lease gets its full length.
func (b *Box) Lease(ctx context.Context, by wire.Address, d time.Duration, opt ReadOptions, show func(*Item, Lease) (received bool, err error)) (*Item, error) {
	if err := checkLease(d); err != nil {
		return nil, err
	}
	b.ingestUnlessMail(ctx) // what cannot be ingested now stays where it is
	opt.Limit = 1
	var group Claim
	lease := Lease{By: by}
	err := b.update(ctx, func(t *tx) error {
		now := inClaim(time.Now()) // after the wait for the lock
		lease.Until = now.Add(d)
		mine := claim{Owner: b.leaseOwner(by), At: now, Until: now.Add(min(d, answerTime))}
		return group.take(t, mine, opt, t.claims.live(now, b.isRunning()))
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
	err = group.update(ctx, func(_ wire.ID, c claim) claim {
		isMine, c.Until = true, lease.Until
		return c
	})
	if err == nil && !isMine {
		err = notHeld(it.ID)
	}
	return it, errors.Join(showErr, err)
}

// leaseOwner returns the owner of a member's claims, with the team if that is another one.
func (b *Box) leaseOwner(by wire.Address) Owner {
	return Owner{ofLease, strings.TrimSuffix(by.String(), "@"+string(b.store.Team))}
}

// leaseOf returns the lease of a claim. By is zero once the message was given back.
func (b *Box) leaseOf(c claim) Lease {
	by, _ := wire.ParseAddress(c.Owner.id, b.store.Team)
	return Lease{By: by, Until: c.Until}
}

// addLease sets what the claims say about an unread message.
func (b *Box) addLease(it *Item, all claims) {
	c := all[it.ID]
	it.TimesHandedOut = c.Times
	if c.isLiveLease(time.Now()) {
		lease := b.leaseOf(c)
		it.Lease = &lease
		it.TimesHandedOut-- // the live lease does not count
	}
}

// LastLease returns the live or last lease of an unread message.
func (b *Box) LastLease(id wire.ID) (last Lease, ok bool, err error) {
	all, err := b.readClaims()
	if c := all[id]; c.Owner.kind == ofLease {
		if ok, err = b.has(b.unread(), id); ok {
			last = b.leaseOf(c)
		}
	}
	return last, ok, err
}

// HasTaken reports whether a member has leased a message of a shared inbox, also under a lease that has expired, or has
// finished it under one. If nothing says who finished it, anybody may have.
func (b *Box) HasTaken(id wire.ID, by wire.Address) bool {
	if shared, _ := b.Shared(); !shared || by.Team != b.store.Team || by.Host != "" {
		return false
	}
	if last, isUnread, _ := b.LastLease(id); isUnread {
		return last.By == by
	}
	isEnd := func(e *wire.Event) bool { return e.Kind == wire.EventAcked && e.MessageID() == id }
	before := id.Time().Add(-24 * time.Hour) // clocks differ
	events, _ := b.Log().Tail(func(e *wire.Event) bool { return isEnd(e) || e.At.Before(before) })
	if len(events) > 0 && isEnd(&events[0]) {
		return events[0].Field("by") == by.String()
	}
	it, err := b.openAnywhere(id)
	return err == nil && it.State == Done
}

// checkLeaseholder returns nil if by may move the message with this claim: by had the last lease, or by owns the
// mailbox and the message is not leased. Otherwise it returns a *LeasedError or ErrNotHeld.
func (b *Box) checkLeaseholder(c claim, id wire.ID, by wire.Address) error {
	isLeased := c.isLiveLease(time.Now())
	switch {
	case c.Owner == b.leaseOwner(by), !isLeased && by == b.Address():
		return nil
	case isLeased:
		return &LeasedError{id, b.leaseOf(c)}
	}
	return notHeld(id)
}

// RenewLease extends a lease to d from now, at most MaxLease, and never shortens it. An expired lease is renewed too,
// unless somebody else has leased the message.
func (b *Box) RenewLease(ctx context.Context, id wire.ID, by wire.Address, d time.Duration) (until time.Time, err error) {
	if err := checkLease(d); err != nil {
		return until, err
	}
	err = b.changeLease(ctx, id, by, func(c *claim) {
		now := inClaim(time.Now())
		if end := now.Add(d); end.After(c.Until) || !c.isLiveLease(now) { // the clock was set back
			c.At, c.Until = now, end
		}
		until = c.Until
	})
	return until, err
}

// EndLease gives a message back before the lease ends, and logs message_returned for a runner that waits for it.
func (b *Box) EndLease(ctx context.Context, id wire.ID, by wire.Address) error {
	err := b.changeLease(ctx, id, by, func(c *claim) { c.Owner, c.Until = Owner{kind: ofLease}, inClaim(time.Now()) })
	if err != nil {
		return err
	}
	return b.logEvents(ctx, event("cli", wire.EventReturned, id).With("by", by.String()))
}

func (b *Box) changeLease(ctx context.Context, id wire.ID, by wire.Address, change func(*claim)) error {
	return b.update(ctx, func(t *tx) error {
		c := t.claims[id]
		if isUnread, err := b.has(b.unread(), id); err != nil {
			return err
		} else if !isUnread {
			c = claim{} // what is left of it
		}
		if c.Owner != b.leaseOwner(by) {
			return cmp.Or(b.checkLeaseholder(c, id, by), notHeld(id))
		}
		change(&c)
		t.claims[id] = c
		return nil
	})
}

// Shared reports whether other members may lease messages of this inbox.
func (b *Box) Shared() (bool, error) { return b.store.root.Exists(b.in("shared")) }

// Share lets other members lease messages of this inbox.
func (b *Box) Share() error {
	if err := b.CheckPresent(); err != nil {
		return err
	}
	return b.store.root.Replace(b.in("shared"), nil, true)
}
