package mailbox

import (
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A message that was taken MaxTries times and never finished goes aside: it is
// kept, with who took it and how that ended, and nobody is handed it again until
// it is put back with Unread. The message goes first and its history after it; a
// kill in between leaves a lease file without an unread message, which whoever
// takes next carries on.

// tidy sets aside what was taken too often, and clears away the lease files of
// messages that are no longer unread. It returns what holders does, since it has
// looked at all of them. The reader's lock is held.
func (r *room) tidy(now time.Time) (held map[wire.ID]bool, unknown map[wire.ID]error, err error) {
	all, err := r.leased(leasesDir)
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	held, unknown = map[wire.ID]bool{}, map[wire.ID]error{}
	for _, id := range all {
		t, err := r.takings(leasesDir, id)
		if err != nil {
			held[id], unknown[id] = true, err // whose it is cannot be told: it stays as it is
			continue
		}
		unread, err := r.fresh.Has(string(id) + ".json")
		switch {
		case err != nil:
			return nil, nil, err
		case unread && !t.spent(now):
			if t.Holder(now) != nil {
				held[id] = true
			}
			continue
		case unread:
			err = r.move(id, place{placeNew, "inbox/new"}, place{placeAside, asideDir})
			if errors.Is(err, errGone) {
				err = nil
			}
		}
		if err == nil {
			err = r.fileAway(id, t)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return held, unknown, nil
}

// fileAway puts the history of a message that is not unread beside it, if it was
// set aside; else it is forgotten.
func (r *room) fileAway(id wire.ID, t *Takings) error {
	aside, err := r.dir(asideDir, false)
	if err != nil {
		return err
	}
	if aside != nil && t != nil {
		there, err := aside.Has(string(id) + ".json")
		if err != nil {
			return err
		}
		if there {
			if err := r.setTakings(asideDir, id, t); err != nil {
				return err
			}
			if k := t.Last(); k.Open() {
				r.freed(id, k) // it ran out
			}
			r.gaveUp(id, t)
		}
	}
	return r.dropLease(leasesDir, id)
}

// Tidy does what is due about leases, for whoever looks: what was taken too
// often is set aside. It returns the messages set aside whose senders are not
// known to have been told. Where nothing is due no lock is taken.
func (b *Box) Tidy(ctx context.Context) (untold []*Item, err error) {
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer func() { r.close() }()
	due, err := r.due(b.store.now())
	if err != nil {
		return nil, err
	}
	if due {
		if err := b.underLease(ctx, func(r *room) error {
			_, _, err := r.tidy(b.store.now())
			return err
		}); err != nil {
			return nil, err
		}
	}
	aside, err := r.dir(asideDir, false)
	if aside == nil || err != nil {
		return nil, err
	}
	err = ids(aside, func(id wire.ID) {
		if t, err := r.takings(asideDir, id); err != nil || t != nil && t.Told {
			return
		}
		if it, err := r.open(place{placeAside, asideDir}, id); err == nil {
			untold = append(untold, r.history(it))
		}
	})
	return untold, err
}

// due reports whether tidy has anything to set aside.
func (r *room) due(now time.Time) (bool, error) {
	ids, err := r.leased(leasesDir)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		t, err := r.takings(leasesDir, id)
		if err != nil || t.spent(now) {
			return err == nil, err
		}
	}
	return false, nil
}

// Told notes that the sender of a message that was set aside knows.
func (b *Box) Told(ctx context.Context, id wire.ID) error {
	return b.underReader(ctx, func(r *room) error {
		d, err := r.dir(asideDir, false)
		if d == nil || err != nil {
			return err
		}
		if there, err := d.Has(string(id) + ".json"); err != nil || !there {
			return err
		}
		t, err := r.takings(asideDir, id)
		if err != nil {
			return err
		}
		if t == nil { // its history was lost, to a power cut or by hand
			now := b.store.now().UTC()
			t = &Takings{Takes: []Taking{{By: b.Address(), Key: wire.NewID(), At: now, Renewed: now, For: time.Second, Showing: true, Ended: now, How: "its history was lost"}}}
		}
		t.Told = true
		return r.setTakings(asideDir, id, t)
	})
}
