package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// MaxLease is the longest lease.
const MaxLease = 24 * time.Hour

// ErrNotHeld says that a message is not held by who wants to finish, renew or give it back: it was never
// taken, or the lease ran out and it went another way.
var ErrNotHeld = errors.New("is not yours: nobody took it, or the lease ran out")

func checkLease(d time.Duration) error {
	if d <= 0 || d > MaxLease {
		return fmt.Errorf("a lease of %s: must be above 0 and at most %s", d, MaxLease)
	}
	return nil
}

func notHeld(id wire.ID) error { return fmt.Errorf("message %s %w", id.Short(6), ErrNotHeld) }

// Lease is who holds an unread message, and until when.
type Lease struct {
	By    wire.Address
	Until time.Time
}

// LeasedError says that somebody else holds a message under a lease.
type LeasedError struct {
	ID wire.ID
	Lease
}

func (e *LeasedError) Error() string {
	return fmt.Sprintf("message %s was taken by %s until %s", e.ID.Short(6), e.By, letter.Stamp(e.Until))
}

// Lease takes the oldest unread message that nobody has claimed, for so long; more than MaxLease, or nothing, is an
// error. The message stays in new, where everybody who reads or takes passes it over until the lease ends: by
// MarkAcked, by EndLease, or by running out. A nil Item: there is none. With current it is neither expired nor
// superseded.
//
// The message is shown before it is held for the whole time: show reports whether it was received; a
// taker who was killed showing it holds it for ten seconds.
func (b *Box) Lease(ctx context.Context, by wire.Address, d time.Duration, current bool, show func(*Item, Lease) (received bool, err error)) (*Item, error) {
	if err := checkLease(d); err != nil {
		return nil, err
	}
	b.TakeIn(ctx)
	var batch Batch
	var taken claimed
	lease := Lease{By: by}
	err := b.updateClaims(ctx, func(all claims) (err error) {
		now := claimNow() // waiting for the lock takes nothing off the lease
		lease.Until = now.Add(d)
		batch, err = b.choose(ReadOptions{Limit: 1, Current: current}, all.live(now, b.running()), true)
		taken = b.claim(all, batch.Items, claim{Owner: b.leaseOwner(by), At: now, Until: now.Add(min(d, answerGoes))})
		return err
	})
	if err != nil || len(batch.Items) == 0 {
		return nil, err
	}
	it := batch.Items[0]
	received, showErr := show(it, lease)
	// What was shown counts, whoever gave up meanwhile.
	ctx = context.WithoutCancel(ctx)
	if !received {
		taken.update(ctx, taken.notReceived)
		return nil, showErr
	}
	isMine := false
	err = taken.update(ctx, func(_ wire.ID, c claim) claim {
		isMine, c.Until = true, lease.Until
		return c
	})
	if err == nil && !isMine {
		err = notHeld(it.ID)
	}
	return it, errors.Join(showErr, err)
}

// leaseOwner is the owner of somebody's leases; members of other teams have their team with them.
func (b *Box) leaseOwner(by wire.Address) string {
	if by.Team == b.store.Team {
		return ownerLease + string(by.Agent)
	}
	return ownerLease + by.String()
}

// leaseOf is the lease that a claim is; nobody's once it was given back.
func (b *Box) leaseOf(c claim) Lease {
	by, _ := wire.ParseAddress(c.Owner[len(ownerLease):], b.store.Team)
	return Lease{By: by, Until: c.Until}
}

// addLease says of an unread message who holds it, and how often it was given out.
func (b *Box) addLease(it *Item, all claims) {
	c := all[it.ID]
	it.Times = c.Times
	if c.isLeaseAt(time.Now()) {
		lease := b.leaseOf(c)
		it.Lease = &lease
		it.Times-- // the present one is not over
	}
}

// LastLease tells who holds an unread message, or held it last.
func (b *Box) LastLease(id wire.ID) (last Lease, ok bool, err error) {
	all, err := b.claimsToChange()
	if c := all[id]; c.isLease() {
		if ok, err = b.has(b.unread(), id); ok {
			last = b.leaseOf(c)
		}
	}
	return last, ok, err
}

// leasedTo is nil when a message with this claim, if any, is by's to move: nobody else holds it and it is
// by's own, or by holds it, or held it last. Else *LeasedError or ErrNotHeld.
func (b *Box) leasedTo(c claim, id wire.ID, by wire.Address) error {
	isTaken := c.isLeaseAt(time.Now())
	if c.Owner == b.leaseOwner(by) || !isTaken && by == b.Address() {
		return nil
	}
	if isTaken {
		return &LeasedError{id, b.leaseOf(c)}
	}
	return notHeld(id)
}

// RenewLease has a lease run for that long from now on, and never makes it shorter. One that ran out and
// that nobody took over is renewed as well. More than MaxLease, or nothing, is an error.
func (b *Box) RenewLease(ctx context.Context, id wire.ID, by wire.Address, d time.Duration) (until time.Time, err error) {
	if err := checkLease(d); err != nil {
		return until, err
	}
	err = b.changeLease(ctx, id, by, func(c *claim) {
		if end := claimNow().Add(d); end.After(c.Until) {
			c.Until = end
		}
		until = c.Until
	})
	return until, err
}

// EndLease gives a message back: nobody holds it any more. It says so among the events
// (message_returned), for a runner that waits for the message.
func (b *Box) EndLease(ctx context.Context, id wire.ID, by wire.Address) error {
	err := b.changeLease(ctx, id, by, func(c *claim) { c.Owner, c.Until = ownerLease, claimNow() })
	if err != nil {
		return err
	}
	return b.note(ctx, event("cli", wire.EventReturned, id).With("by", by.String()))
}

func (b *Box) changeLease(ctx context.Context, id wire.ID, by wire.Address, change func(*claim)) error {
	return b.updateClaims(ctx, func(all claims) error {
		c := all[id]
		if c.Owner != b.leaseOwner(by) {
			return cmp.Or(b.leasedTo(c, id, by), notHeld(id))
		}
		change(&c)
		all[id] = c
		return nil
	})
}

// Shared reports whether other members may take from this inbox.
func (b *Box) Shared() (bool, error) { return b.store.root.Exists(b.in("shared")) }

// Share lets other members take from this inbox.
func (b *Box) Share() error {
	return b.store.root.Replace(b.in("shared"), nil, true)
}
