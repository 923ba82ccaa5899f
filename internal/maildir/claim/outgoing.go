package claim

import (
	"context"
	"errors"
	"slices"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// Outgoing lists the messages that are to be sent, oldest first, also those that were taken and not removed.
func Outgoing(b *maildir.Box) ([]wire.ID, error) {
	ids, err := b.IDs(maildir.Range{Unread: true, Owed: true})
	slices.Sort(ids)
	return ids, err
}

// TakeOutgoing moves messages that Outgoing listed to cur, where they cannot be withdrawn any more, and returns them.
// It skips those that were withdrawn. If some cannot be read, it returns the others with the error.
func TakeOutgoing(ctx context.Context, b *maildir.Box, ids []wire.ID) (items []*wire.Item, err error) {
	err = b.Locked(ctx, "reader", func() (errs error) {
		for _, id := range ids {
			err := b.Move(id, b.Unread(), b.Owed())
			if err == nil || errors.Is(err, maildir.ErrNotFound) { // not in new: taken before, or withdrawn
				var it *wire.Item
				if it, err = b.Open(b.Owed(), id); err == nil {
					items = append(items, it)
				}
			}
			if !errors.Is(err, maildir.ErrNotFound) {
				errs = errors.Join(errs, err)
			}
		}
		return errs
	})
	return items, err
}

// RemoveOutgoing durably removes messages that TakeOutgoing returned and that are now safe elsewhere.
func RemoveOutgoing(b *maildir.Box, ids ...wire.ID) error {
	for _, id := range ids {
		if err := b.Store().Dir().Remove(b.Owed().File(id)); err != nil {
			return err
		}
	}
	return b.Store().Dir().Sync(b.Owed().Dir)
}
