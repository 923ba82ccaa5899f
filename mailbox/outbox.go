package mailbox

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/wire"
)

// BridgeDir holds what is on its way to other machines, and what came from them. The outbox of a host is an inbox
// that lies there directly, with the mail for all its members, until a bridge has sent it:
//
//	.bridge/<host>/new         to be sent; it can be withdrawn
//	.bridge/<host>/cur         being sent: it may have arrived
//	.bridge/<host>/withdrawn
const BridgeDir = ".bridge"

// Outbox is where mail for a member on another machine waits. It is made by the first delivery.
func (s *Store) Outbox(to wire.Address) *Box { return &Box{store: s, agent: to.Agent, host: to.Host} }

// Outboxes are the outboxes that there are, one a host, by name.
func (s *Store) Outboxes() (boxes []*Box, err error) {
	names, err := s.root.Names(BridgeDir)
	for _, name := range names {
		if host, none := hostkey.ParseHost(name); none == nil {
			boxes = append(boxes, s.Outbox(wire.Address{Host: host}))
		}
	}
	return boxes, err
}

// makeOutbox makes an outbox that is not there yet; any other mailbox is left as it is. tmp is made last: where it is,
// the rest is known to survive a power cut.
func (b *Box) makeOutbox() error {
	root := b.store.root
	if b.host == "" || root.IsDir(b.in("tmp")) == nil {
		return nil
	}
	if err := cmp.Or(root.MkdirAll(b.in("cur")), root.MkdirAll(b.in("new"))); err != nil {
		return err
	}
	if err := cmp.Or(root.Sync(b.in()), root.Sync(BridgeDir), root.Sync(".")); err != nil {
		return err
	}
	return root.MkdirAll(b.in("tmp"))
}

// Outgoing lists what lies in an outbox to be sent, the oldest first, also what was taken and not removed.
func (b *Box) Outgoing() ([]wire.ID, error) {
	ids, err := b.IDs(Range{Unread: true, Owed: true})
	slices.Sort(ids)
	return ids, err
}

// TakeOutgoing takes messages that Outgoing listed, to be sent: they cannot be withdrawn any more. One that was
// withdrawn is passed over, and what cannot be read hides no other: the error comes with the rest.
func (b *Box) TakeOutgoing(ctx context.Context, ids []wire.ID) (items []*Item, err error) {
	err = b.locked(ctx, "reader", func() (errs error) {
		for _, id := range ids {
			err := b.move(id, b.unread(), b.owed())
			if err == nil || errors.Is(err, ErrNotFound) { // it was taken before, or withdrawn
				var it *Item
				if it, err = b.open(b.owed(), id, nil); err == nil {
					items = append(items, it)
				}
			}
			if !errors.Is(err, ErrNotFound) {
				errs = errors.Join(errs, err)
			}
		}
		return errs
	})
	return items, err
}

// RemoveOutgoing removes messages that TakeOutgoing gave and that are safe elsewhere, durably.
func (b *Box) RemoveOutgoing(ids ...wire.ID) error {
	for _, id := range ids {
		if err := b.store.root.Remove(b.owed().file(id)); err != nil {
			return err
		}
	}
	return b.store.root.Sync(b.owed().dir)
}
