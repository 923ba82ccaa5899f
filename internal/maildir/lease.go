package maildir

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// ErrNotHeld says that a member wants to finish, renew or give back a message that it has not leased, or whose lease
// ran out.
var ErrNotHeld = errors.New("is not yours: nobody took it, or the lease ran out")

// NotHeld returns ErrNotHeld for a message.
func NotHeld(id wire.ID) error { return fmt.Errorf("message %s %w", id.Short(6), ErrNotHeld) }

// ErrBeingTyped says that a runner is typing the message to its agent just now.
var ErrBeingTyped = errors.New("is being typed")

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

// LeaseOwner returns the owner of a member's claims, with the team if that is another one.
func (b *Box) LeaseOwner(by wire.Address) claimfile.Owner {
	return claimfile.Owner{Kind: claimfile.Lease, ID: strings.TrimSuffix(by.String(), "@"+string(b.store.Team))}
}

// LeaseOf returns the lease of a claim. By is zero once the message was given back.
func (b *Box) LeaseOf(c claimfile.Entry) Lease {
	by, _ := wire.ParseAddress(c.Owner.ID, b.store.Team)
	return Lease{By: by, Until: c.Until}
}

// addLease sets what the claims say about an unread message.
func (b *Box) addLease(it *Item, all claimfile.Table) {
	c := all[it.ID]
	it.TimesHandedOut = c.Times
	if c.IsLiveLease(time.Now()) {
		lease := b.LeaseOf(c)
		it.Lease = &lease
		it.TimesHandedOut-- // the live lease does not count
	}
}

// CheckLeaseholder returns nil if by may move the message with this claim: by had the last lease, or by owns the
// mailbox and the message is not leased. Otherwise it returns a *LeasedError or ErrNotHeld.
func (b *Box) CheckLeaseholder(c claimfile.Entry, id wire.ID, by wire.Address) error {
	isLeased := c.IsLiveLease(time.Now())
	switch {
	case c.Owner == b.LeaseOwner(by), !isLeased && by == b.Address():
		return nil
	case isLeased:
		return &LeasedError{id, b.LeaseOf(c)}
	}
	return NotHeld(id)
}
