package maildir

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"syscall"

	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/wire"
)

// Tx is a mailbox under its reader lock, under which messages move and claims change.
type Tx struct {
	*Box
	Claims claimfile.Table // as they are to be
	stored claimfile.Table // as they are in the file
}

// Update runs change under the reader lock, and writes the claims if it has changed them.
func (b *Box) Update(ctx context.Context, change func(*Tx) error) error {
	return b.Locked(ctx, "reader", func() error {
		all, err := b.ReadClaims()
		var errno syscall.Errno
		if errors.As(err, &errno) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		t := &Tx{b, all, maps.Clone(all)}
		if err := change(t); err != nil {
			return err
		}
		return t.save()
	})
}

// save writes the claims if they have changed, without those of messages that are no longer unread, unless they are new.
func (t *Tx) save() error {
	if maps.Equal(t.Claims, t.stored) {
		return nil
	}
	maps.DeleteFunc(t.Claims, func(id wire.ID, c claimfile.Entry) bool {
		isUnread, err := t.Has(t.Unread(), id)
		return c == claimfile.Entry{} || err == nil && !isUnread && c == t.stored[id]
	})
	if len(t.Claims) > 0 {
		if err := t.Mkdir(t.In("run")); err != nil {
			return err
		}
	}
	err := claimfile.Write(t.store.root, t.claimsFile(), t.Claims)
	if err == nil {
		t.stored = maps.Clone(t.Claims)
	}
	return err
}

func (b *Box) claimsFile() string { return b.In("run/claims.json") }

// Claims returns the claims for a caller that only looks.
func (b *Box) Claims() claimfile.Table {
	all, _ := b.ReadClaims()
	return all
}

// ReadClaims returns the claims, and an error if the file is ignored.
func (b *Box) ReadClaims() (claimfile.Table, error) {
	return claimfile.Read(b.store.root, b.claimsFile())
}
