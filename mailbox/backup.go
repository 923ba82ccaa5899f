package mailbox

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// List names every message of the mailbox, each once, in the order in which they move, under the reader's
// lock, so that none is missed.
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

// Copy reads a message's file, wherever it lies by now. where is its path below the agent's directory, or
// what that was before it went to the archive: inbox/done/2026-01-02/<id>.json.
func (b *Box) Copy(id wire.ID) (where string, data []byte, err error) {
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

// Put puts a message back where a backup found it, in a directory of the inbox, durably, unless one of its id is
// anywhere in the mailbox. It reports whether it did.
func (b *Box) Put(ctx context.Context, dir string, data []byte) (put bool, err error) {
	m, err := wire.Decode(data)
	if err != nil {
		return false, err
	}
	at, ok := map[string]place{
		"new": b.unread(), "aside": b.unread(), "cur": b.owed(), "done": b.done(m.ID), "withdrawn": b.withdrawn(),
	}[dir]
	if !ok {
		return false, fmt.Errorf("a message cannot be restored into %q", dir)
	}
	err = b.locked(ctx, "inbox", func() error {
		if _, there, err := b.locate(m.ID); there || err != nil {
			return err
		}
		if err := cmp.Or(b.mkdir(b.in("inbox/tmp")), b.mkdir(at.dir)); err != nil {
			return err
		}
		temp := b.in("inbox/tmp", string(m.ID)+"."+string(wire.NewID()))
		if err := b.store.root.Publish(temp, at.file(m.ID), bytes.NewReader(data)); err != nil {
			return err
		}
		put = true
		return b.store.root.Sync(at.dir)
	})
	return put, err
}
