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
	err = b.find(id, func(d folder) (err error) {
		if data, err = b.store.root.ReadFile(d.file(id), wire.MaxFile); absent(err) {
			return notFound(id)
		}
		if d.state == Done {
			d = b.done(id)
		}
		where = strings.TrimPrefix(d.file(id), b.in()+"/")
		return err
	})
	return where, data, err
}

// Restoration is a message of a backup, and what became of it.
type Restoration struct {
	Dir        string // of the inbox: new, cur, done or withdrawn
	Data       []byte // the message's file
	IsRestored bool   // otherwise the mailbox had a message with its id, or there is an error
	Err        error

	id   wire.ID
	to   folder
	temp string
}

// Restore restores messages durably, as Deliver delivers: their files are written and synced side by side, and each
// directory once.
func (b *Box) Restore(ctx context.Context, all []*Restoration) {
	mkdirErr := b.mkdir(b.in("inbox/tmp"))
	inParallel(all, func(r *Restoration) {
		if r.Err = cmp.Or(mkdirErr, b.prepareRestoration(r)); r.Err == nil && r.temp != "" {
			r.Err = b.store.root.Create(r.temp, r.Data)
		}
	})
	moved := map[string][]*Restoration{} // by directory
	lockErr := b.locked(ctx, "inbox", func() error {
		for _, r := range all {
			if r.Err == nil && r.temp != "" {
				r.Err = b.moveRestored(r)
			}
			if r.IsRestored {
				moved[r.to.dir] = append(moved[r.to.dir], r)
			}
		}
		return nil
	})
	for dir, those := range moved {
		err := b.store.root.Sync(dir)
		for _, r := range those {
			r.Err = err
		}
	}
	for _, r := range all {
		r.Err = cmp.Or(r.Err, lockErr)
		if r.temp != "" && !r.IsRestored {
			b.store.root.Remove(r.temp)
		}
	}
}

// prepareRestoration finds out where a message belongs. It gets no temp file if it is there.
func (b *Box) prepareRestoration(r *Restoration) error {
	m, err := wire.Decode(r.Data)
	if err != nil {
		return err
	}
	to, ok := map[string]folder{
		"new": b.unread(), "cur": b.owed(), "done": b.done(m.ID), "withdrawn": b.withdrawn(),
	}[r.Dir]
	if !ok {
		return fmt.Errorf("a message cannot be restored into %q", r.Dir)
	}
	r.id, r.to = m.ID, to
	isThere, err := b.store.root.Exists(to.file(m.ID))
	if err == nil && !isThere {
		r.temp = b.in("inbox/tmp", string(m.ID)+"."+string(wire.NewID()))
	}
	return err
}

// moveRestored moves a message to its folder, unless the mailbox has it. The inbox lock is held.
func (b *Box) moveRestored(r *Restoration) error {
	if _, isThere, err := b.locate(r.id); isThere || err != nil {
		return err
	}
	err := b.mkdir(r.to.dir)
	if err == nil {
		err = b.store.root.Move(r.temp, r.to.file(r.id))
	}
	r.IsRestored = err == nil
	return err
}
