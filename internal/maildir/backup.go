package maildir

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// List lists every message of the mailbox under the reader lock, so that none is missed.
func (b *Box) List(ctx context.Context) (all []wire.ID, err error) {
	list := func() (err error) {
		all, err = b.IDs(everywhere)
		return err
	}
	if err = b.locked(ctx, "reader", list); isUnwritable(err) {
		err = list()
	}
	return all, err
}

// ReadRaw reads a message's file wherever it is by now. where is its path below the agent's directory; for an archived
// message the path before it was archived, as in inbox/done/2026-01-02/<id>.json.
func (b *Box) ReadRaw(id wire.ID) (where string, data []byte, err error) {
	err = b.find(id, func(p place) (err error) {
		if data, err = b.store.root.ReadFile(p.file(id), wire.MaxFile); absent(err) {
			return notFound(id)
		}
		if p.state == Done {
			p = b.done(id)
		}
		where = strings.TrimPrefix(p.file(id), b.in()+"/")
		return err
	})
	return where, data, err
}

// RestoreMessage restores a message from a backup durably to a directory of the inbox, and reports true, unless the
// mailbox has a message with its id.
func (b *Box) RestoreMessage(ctx context.Context, dir string, data []byte) (isRestored bool, err error) {
	m, err := wire.Decode(data)
	if err != nil {
		return false, err
	}
	to, ok := map[string]place{
		"new": b.unread(), "cur": b.owed(), "done": b.done(m.ID), "withdrawn": b.withdrawn(),
	}[dir]
	if !ok {
		return false, fmt.Errorf("a message cannot be restored into %q", dir)
	}
	err = b.locked(ctx, "inbox", func() error {
		if _, isThere, err := b.locate(m.ID); isThere || err != nil {
			return err
		}
		if err := cmp.Or(b.mkdir(b.in("inbox/tmp")), b.mkdir(to.dir)); err != nil {
			return err
		}
		temp := b.in("inbox/tmp", string(m.ID)+"."+string(wire.NewID()))
		if err := b.store.root.Create(temp, data); err != nil {
			return err
		}
		defer b.store.root.Remove(temp)
		if err := b.store.root.Move(temp, to.file(m.ID)); err != nil {
			return err
		}
		isRestored = true
		return b.store.root.Sync(to.dir)
	})
	return isRestored, err
}
