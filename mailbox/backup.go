package mailbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// Entry names a message file of a mailbox, for a backup.
type Entry struct {
	ID    wire.ID
	State State
	Path  string // below the agent's directory, with slashes: inbox/done/2026-01-02/<id>.json
}

// entry is the entry of a message in a place; what is archived is restored as done.
func (b *Box) entry(p place, id wire.ID) Entry {
	below, ok := strings.CutPrefix(p.file(id), b.in()+"/")
	if !ok {
		below = "inbox" + strings.TrimPrefix(p.file(id), b.archived())
	}
	return Entry{id, p.state, below}
}

// List names every message of the mailbox, in the order in which they move, under the reader's lock, so
// that none is missed or named twice.
func (b *Box) List(ctx context.Context) (out []Entry, err error) {
	list := func() error {
		out = nil
		for _, rg := range inOrder {
			places, err := b.placesIn(rg)
			if err != nil {
				return err
			}
			for _, p := range places {
				ids, err := b.list(p.dir)
				if err != nil {
					return err
				}
				for _, id := range ids {
					out = append(out, b.entry(p, id))
				}
			}
		}
		return nil
	}
	if err = b.locked(ctx, "reader", list); isUnwritable(err) {
		err = list()
	}
	return out, err
}

// Copy reads a message file that List named. One that has moved meanwhile is looked for further on, and
// its entry corrected.
func (b *Box) Copy(e *Entry) (data []byte, err error) {
	err = b.find(e.ID, func(p place) (err error) {
		if data, err = b.store.root.ReadFile(p.file(e.ID), wire.MaxFile); absent(err) {
			return errGone
		}
		if err == nil {
			*e = b.entry(p, e.ID)
		}
		return err
	})
	return data, err
}

// Put puts a message back where a backup found it, durably, unless one of its id is anywhere in the
// mailbox. It reports whether it did.
func (b *Box) Put(ctx context.Context, state State, data []byte) (put bool, err error) {
	m, err := wire.Decode(data)
	if err != nil {
		return false, err
	}
	at, ok := map[State]place{Unread: b.unread(), Owed: b.owed(), Done: b.done(m.ID), Withdrawn: b.withdrawn()}[state]
	if !ok {
		return false, fmt.Errorf("a message cannot be put back as %q", state)
	}
	err = b.locked(ctx, "inbox", func() error {
		if _, there, err := b.locate(m.ID); there || err != nil {
			return err
		}
		for _, dir := range []string{b.in("inbox/tmp"), at.dir} {
			if err := b.mkdir(dir); err != nil {
				return err
			}
		}
		temp := b.in("inbox/tmp", string(m.ID)+"."+string(wire.NewID()))
		if err := b.store.publish(temp, at.file(m.ID), data); err != nil {
			return err
		}
		put = true
		return b.store.root.Sync(at.dir)
	})
	return put, err
}
