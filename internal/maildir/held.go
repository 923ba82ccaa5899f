package maildir

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/wire"
)

// Held has the holders of unread messages, by message.
type Held map[wire.ID]holder.Holder

// Live returns those that have their message now.
func (all Held) Live(now time.Time, isRunning bool) Held {
	live := maps.Clone(all)
	maps.DeleteFunc(live, func(_ wire.ID, h holder.Holder) bool { return !h.IsLive(now, isRunning) })
	return live
}

// Held lists the holders of unread messages, without opening any.
func (b *Box) Held() (Held, error) {
	folders, err := b.heldFolders()
	all := Held{}
	for _, d := range folders {
		ids, failed := b.IDsIn(d)
		if !errors.Is(failed, durable.ErrNotDirectory) {
			err = errors.Join(err, failed)
		}
		for _, id := range ids {
			all[id] = d.Holder()
		}
	}
	return all, err
}

// heldFolders lists the directories of holders.
func (b *Box) heldFolders() (folders []Folder, err error) {
	names, err := b.store.root.Names(b.In("inbox/held"))
	if errors.Is(err, durable.ErrNotDirectory) { // then nobody can have a message
		return nil, nil
	}
	for _, name := range names {
		if !strings.HasPrefix(name, ".") {
			folders = append(folders, Folder{wire.Unread, b.In("inbox/held", name)})
		}
	}
	return folders, err
}

// RemoveEmptyHeld removes the directories of holders who have nothing any more: a kill leaves them. The caller holds the
// reader lock.
func (b *Box) RemoveEmptyHeld() {
	folders, _ := b.heldFolders()
	for _, d := range folders {
		b.store.root.Remove(d.Dir) // one that is not empty stays
	}
}

// HeldBy is the folder of a holder: new for nobody.
func (b *Box) HeldBy(h holder.Holder) Folder {
	if h == (holder.Holder{}) {
		return b.Unread()
	}
	return Folder{wire.Unread, b.In("inbox/held", h.Name())}
}

// Holder returns whose folder it is.
func (d Folder) Holder() (h holder.Holder) {
	if above, name := path.Split(d.Dir); path.Base(above) == "held" {
		h = holder.Parse(name)
	}
	return h
}

// HandTo has an unread message change hands, unless it has meanwhile: then it returns ErrNotFound. The caller holds the
// reader lock.
func (b *Box) HandTo(id wire.ID, from, to holder.Holder) error {
	if from == to {
		return nil
	}
	return b.Move(id, b.HeldBy(from), b.HeldBy(to))
}

// ErrNotHeld says that a member wants to finish, renew or give back a message that it has not leased, or whose lease
// ran out.
var ErrNotHeld = errors.New("is not yours: nobody took it, or the lease ran out")

// NotHeld returns ErrNotHeld for a message.
func NotHeld(id wire.ID) error { return fmt.Errorf("message %s %w", id.Short(6), ErrNotHeld) }

// Withdrawn returns ErrWithdrawn for a message.
func Withdrawn(id wire.ID) error { return fmt.Errorf("message %s %w", id.Short(6), ErrWithdrawn) }

// ErrBeingTyped says that a runner is typing the message to its agent just now.
var ErrBeingTyped = errors.New("is being typed")

// LeasedError says that somebody else has leased a message.
type LeasedError struct {
	ID wire.ID
	wire.Lease
}

func (e *LeasedError) Error() string {
	return fmt.Sprintf("message %s was taken by %s until %s", e.ID.Short(6), e.By, letter.Stamp(e.Until))
}

// Leaseholder is what a holder of a lease is called: the member, with the team if that is another one.
func (b *Box) Leaseholder(by wire.Address) string {
	return strings.TrimSuffix(b.AddressThere(by).String(), "@"+string(b.store.Team))
}

// LeaseOf returns a holder's lease. By is zero once the message was given back.
func (b *Box) LeaseOf(h holder.Holder) wire.Lease {
	by, _ := wire.ParseAddress(h.Who, b.store.Team)
	return wire.Lease{By: b.addressHere(by), Until: h.Until}
}

// setHolder sets what is known of who has an unread message.
func (b *Box) setHolder(it *wire.Item, h holder.Holder) {
	it.TimesHandedOut, it.IsAside, it.IsWaiting = h.Times, h.Kind == holder.Aside, h.Kind == holder.Later
	if h.IsLiveLease(time.Now()) {
		lease := b.LeaseOf(h)
		it.Lease = &lease
		it.TimesHandedOut-- // the live lease does not count
	}
}

// CheckLeaseholder returns nil if by may finish the message that h has: by had the last lease, or by owns the mailbox and
// the message is not leased. Otherwise it returns a *LeasedError or ErrNotHeld.
func (b *Box) CheckLeaseholder(h holder.Holder, id wire.ID, by wire.Address) error {
	isLeased := h.IsLiveLease(time.Now())
	switch {
	case h.Kind == holder.Lease && h.Who == b.Leaseholder(by), !isLeased && by == b.Address():
		return nil
	case isLeased:
		return &LeasedError{id, b.LeaseOf(h)}
	}
	return NotHeld(id)
}

// EndHolders ends the time of those of the holders that isOver selects: what they have may have been received. The caller
// holds the reader lock.
func (b *Box) EndHolders(all Held, isOver func(holder.Holder) bool) (errs error) {
	for id, h := range all {
		if !isOver(h) {
			continue
		}
		all[id] = h.Ended()
		if err := b.HandTo(id, h, all[id]); !errors.Is(err, ErrNotFound) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}
