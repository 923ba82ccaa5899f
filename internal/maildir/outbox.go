package maildir

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/wire"
)

// BridgeDir holds mail to and from other machines. The outbox of a host is an inbox in it, with the mail for all
// members on that host until a bridge has sent it:
//
//	.bridge/<host>/new         to be sent; it can be withdrawn
//	.bridge/<host>/cur         being sent: it may have arrived
//	.bridge/<host>/withdrawn
const BridgeDir = ".bridge"

// Outbox returns the outbox in which mail for a member on another machine waits. Its first delivery makes it.
func (s *Store) Outbox(to wire.Address) *Box { return &Box{store: s, agent: to.Agent, host: to.Host} }

// Outboxes lists the outboxes, one per host, sorted by name.
func (s *Store) Outboxes() (boxes []*Box, err error) {
	names, err := s.root.Names(BridgeDir)
	for _, name := range names {
		if host, notHost := hostkey.ParseHost(name); notHost == nil {
			boxes = append(boxes, s.Outbox(wire.Address{Host: host}))
		}
	}
	return boxes, err
}

// makeOutbox makes an outbox if it is missing, and does nothing for other mailboxes. tmp is made last: it proves that
// the other directories survive a power cut.
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

// Outgoing lists the messages that are to be sent, oldest first, also those that were taken and not removed.
func (b *Box) Outgoing() ([]wire.ID, error) {
	ids, err := b.IDs(Range{Unread: true, Owed: true})
	slices.Sort(ids)
	return ids, err
}

// TakeOutgoing moves messages that Outgoing listed to cur, where they cannot be withdrawn any more, and returns them.
// It skips those that were withdrawn. If some cannot be read, it returns the others with the error.
func (b *Box) TakeOutgoing(ctx context.Context, ids []wire.ID) (items []*Item, err error) {
	err = b.locked(ctx, "reader", func() (errs error) {
		for _, id := range ids {
			err := b.move(id, b.unread(), b.owed())
			if err == nil || errors.Is(err, ErrNotFound) { // not in new: taken before, or withdrawn
				var it *Item
				if it, err = b.open(b.owed(), id); err == nil {
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

// RemoveOutgoing durably removes messages that TakeOutgoing returned and that are now safe elsewhere.
func (b *Box) RemoveOutgoing(ids ...wire.ID) error {
	for _, id := range ids {
		if err := b.store.root.Remove(b.owed().file(id)); err != nil {
			return err
		}
	}
	return b.store.root.Sync(b.owed().dir)
}
