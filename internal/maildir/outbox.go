package maildir

import (
	"cmp"

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
	if b.host == "" || root.IsDir(b.In("tmp")) == nil {
		return nil
	}
	if err := cmp.Or(root.MkdirAll(b.In("cur")), root.MkdirAll(b.In("new"))); err != nil {
		return err
	}
	if err := cmp.Or(root.Sync(b.In()), root.Sync(BridgeDir), root.Sync(".")); err != nil {
		return err
	}
	return root.MkdirAll(b.In("tmp"))
}
