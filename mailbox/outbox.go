package mailbox

import (
	"cmp"
	"context"
	"errors"
	"slices"

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
		if wire.IsName(name) && s.root.IsDir(BridgeDir+"/"+name+"/new") == nil {
			boxes = append(boxes, s.Outbox(wire.Address{Host: wire.Name(name)}))
		}
	}
	return boxes, err
}

// makeOutbox makes an outbox that is not there yet, durably; any other mailbox is left as it is.
func (b *Box) makeOutbox() error {
	root := b.store.root
	if b.host == "" || root.IsDir(b.in("new")) == nil {
		return nil
	}
	for _, dir := range []string{"tmp", "cur", "new"} {
		if err := root.MkdirAll(b.in(dir)); err != nil {
			return err
		}
	}
	return cmp.Or(root.Sync(b.in()), root.Sync(BridgeDir), root.Sync("."))
}

// TakeOutgoing takes the messages of an outbox to be sent, at most limit (0: all), the oldest first: also those
// that were taken before and not removed. From then on they cannot be withdrawn. What cannot be read hides no
// other: the error comes with the rest.
func (b *Box) TakeOutgoing(ctx context.Context, limit int) (items []*Item, err error) {
	var unreadable error
	err = b.locked(ctx, "reader", func() error {
		taken, err := b.list(b.owed())
		ids, err2 := b.list(b.unread())
		ids = append(ids, taken...)
		slices.Sort(ids)
		for _, id := range ids[:min(len(ids), cmp.Or(limit, len(ids)))] {
			it, err := b.takeOutgoing(id)
			if unreadable = errors.Join(unreadable, err); it != nil {
				items = append(items, it)
			}
		}
		return cmp.Or(err, err2)
	})
	return items, cmp.Or(err, unreadable)
}

// takeOutgoing takes one; what is no message goes to bad. The reader's lock is held.
func (b *Box) takeOutgoing(id wire.ID) (*Item, error) {
	if err := b.move(id, b.unread(), b.owed()); err != nil && err != errGone { // gone: it was taken before
		return nil, err
	}
	it, err := b.open(b.owed(), id, nil)
	if bad, isBad := errors.AsType[*BadError](err); isBad && bad.Unreadable == nil {
		return nil, b.setAside(b.owed().file(id), bad.Name, bad.Reason)
	}
	return it, err
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
