package keep

import (
	"context"
	"errors"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/wire"
)

// Place is where a message was when its mailbox was listed.
type Place struct {
	ID     wire.ID
	Folder maildir.Folder
}

// ListAll lists every message of a mailbox or an outbox under its reader lock, so that none is missed.
func ListAll(ctx context.Context, b *maildir.Box) (all []Place, err error) {
	list := func() error {
		return b.Entries(maildir.Everywhere, func(d maildir.Folder, id wire.ID) bool {
			all = append(all, Place{id, d})
			return true
		})
	}
	if err = b.Locked(ctx, "reader", list); maildir.IsUnwritable(err) {
		err = list()
	}
	return all, err
}

// ReadRaw reads a message's file wherever it is by now. name is its path in a backup, below the team's directory: an
// archived message is done, and what somebody has is nobody's.
func ReadRaw(b *maildir.Box, at Place) (name string, data []byte, err error) {
	read := func(d maildir.Folder) (err error) {
		if data, err = b.Store().Dir().ReadFile(d.File(at.ID), wire.MaxFile); durable.IsAbsent(err) {
			return maildir.ErrNotFound
		}
		switch {
		case d.State == wire.Done:
			d = b.Done(at.ID)
		case d.State == wire.Unread && d.Holder().Kind != holder.Later:
			d = b.Unread()
		}
		name = d.File(at.ID)
		return err
	}
	if err = read(at.Folder); errors.Is(err, maildir.ErrNotFound) {
		err = b.Find(at.ID, read)
	}
	return name, data, err
}
