package teams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// ErrNotShared says that an inbox is its owner's alone: nobody else takes from it.
var ErrNotShared = errors.New("is not shared: only its owner takes from it")

// MayTake reports why a member may not take from an inbox under a lease: from one's own
// always, from another's of the same team when it is shared.
func MayTake(box *mailbox.Box, by wire.Address) error {
	if box.Address() == by {
		return nil
	}
	shared, err := box.Shared()
	if err == nil && (!shared || by.Team != box.Address().Team) {
		err = fmt.Errorf("the inbox of %s %w", box.Agent(), ErrNotShared)
	}
	return err
}

// ackLease is how long a message stays its holder's at least while its ack is under way.
const ackLease = 30 * time.Second

// AckTaken is Ack for a message in box that by took under a lease: the ack reaches the
// sender, then the lease and the debt end. Nobody else can take the message in between.
// *mailbox.LeasedError or mailbox.ErrNotHeld where by does not hold it.
func (r *Root) AckTaken(ctx context.Context, box *mailbox.Box, by wire.Address, m *wire.Message, text string, origin *wire.Origin) (Acked, error) {
	if _, err := box.RenewLease(ctx, m.ID, by, ackLease); err != nil {
		return Acked{}, err
	}
	return r.ack(ctx, box, by, m, text, origin)
}

// LeaseFlags is what is shown of a message's lease.
func LeaseFlags(it *mailbox.Item) letter.Flags {
	f := letter.Flags{TimesTaken: it.Times}
	if it.Lease != nil {
		f.TakenBy, f.TakenUntil = it.Lease.By, it.Lease.Until
	}
	return f
}
