package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/wire"
)

// markRead moves a message that has been read: new to cur when an acknowledgement is
// asked for, else to done. errGone when it is no longer in new. The reader's lock is
// held.
func (b *Box) markRead(m *wire.Message) error {
	to := b.done(m.ID)
	if m.RequiresAck && !b.HasAcked(m.ID) {
		to = b.owed()
	}
	return b.move(m.ID, b.unread(), to)
}

// openAndMarkRead is markRead for an id.
func (b *Box) openAndMarkRead(id wire.ID) error {
	it, err := b.open(b.unread(), id)
	if err != nil {
		return err
	}
	return b.markRead(it.Message)
}

// MarkRead marks an unread message as read, for who replies to it. It reports whether
// it did: what was not unread stays, and what somebody holds under a lease stays theirs.
func (b *Box) MarkRead(ctx context.Context, id wire.ID) (bool, error) {
	err := b.locked(ctx, "reader", func() error {
		all, err := b.claimsToChange()
		if err != nil {
			return err
		}
		if b.leasedTo(all[id], id, b.Address()) != nil {
			return errGone
		}
		return b.openAndMarkRead(id)
	})
	switch {
	case err == errGone:
		return false, nil
	case err != nil:
		return false, err
	}
	return true, b.note(ctx, readEvent(id, wire.NewID()))
}

// MarkAcked ends the debt of an acknowledgement: cur (or new) to done, after the ack
// has reached the sender. delivered says whether it did; a sender without a mailbox
// here gets none. by is who acknowledges: the mailbox's owner, or who holds the message
// under a lease. Again: nothing. *LeasedError: somebody else holds it.
func (b *Box) MarkAcked(ctx context.Context, id wire.ID, by wire.Address, delivered bool) error {
	var was State
	err := b.moving(ctx, id, func(p place, claims claims) error {
		was = p.state
		switch {
		case was == Unread:
			if err := b.leasedTo(claims[id], id, by); err != nil {
				return err
			}
		case was != Owed:
			return nil
		case by != b.Address():
			return notHeld(id)
		}
		return b.move(id, p, b.done(id))
	})
	if err != nil || was != Unread && was != Owed {
		return err
	}
	var events []wire.Event
	acked := wire.Event{Kind: wire.EventAcked, Source: "cli"}.With("id", string(id))
	if by != b.Address() {
		acked = acked.With("by", by.String())
	} else if was == Unread {
		events = append(events, readEvent(id, wire.NewID()))
	}
	if !delivered {
		acked = acked.With("delivered", false)
	}
	return b.note(ctx, append(events, acked)...)
}

// moving calls f with the place of a message and with what is claimed, under the
// reader's lock. ErrNotFound when the message is nowhere.
func (b *Box) moving(ctx context.Context, id wire.ID, f func(place, claims) error) error {
	return b.locked(ctx, "reader", func() error {
		p, ok, err := b.locate(id)
		if err == nil && !ok {
			err = fmt.Errorf("%s: %w", id, ErrNotFound)
		}
		if err != nil {
			return err
		}
		claims, err := b.claimsToChange()
		if err != nil {
			return err
		}
		return f(p, claims)
	})
}

// MarkUnread puts a message that was read back into new, in nobody's hands. It reports
// whether it moved; a message that is unread already stays. ErrWithdrawn for one that
// was withdrawn. One that was acknowledged is not owed again when it is read once more.
func (b *Box) MarkUnread(ctx context.Context, id wire.ID) (moved bool, err error) {
	err = b.locked(ctx, "inbox", func() error {
		return b.moving(ctx, id, func(p place, _ claims) error {
			switch p.state {
			case Unread:
				return nil
			case Withdrawn:
				return fmt.Errorf("%s %w", id.Short(6), ErrWithdrawn)
			}
			moved = true
			// A claim from before it was read would be live again.
			if err := b.changeClaims(func(all claims) error { delete(all, id); return nil }); err != nil {
				return err
			}
			return b.move(id, p, b.unread())
		})
	})
	return moved && err == nil, err
}

// putBackAside makes unread again what the first generation had set aside: messages that
// were taken too often. What cannot be moved stays for the next look.
func (b *Box) putBackAside(ctx context.Context) {
	aside := place{Unread, b.in("inbox/aside")}
	ids, _, err := b.list(aside.dir)
	if err != nil || len(ids) == 0 {
		return
	}
	b.locked(ctx, "inbox", func() error {
		return b.locked(ctx, "reader", func() error {
			for _, id := range ids {
				to, there, err := b.locate(id) // there: this one is a duplicate
				if !there {
					to = b.unread()
				}
				if err == nil {
					b.move(id, aside, to)
				}
			}
			return nil
		})
	})
}

// Withdraw takes a message that is unread, or read and not acknowledged, out of the
// mailbox and keeps it as withdrawn. It returns the state in which it found the
// message: Unread and Owed mean that it was withdrawn now, Withdrawn that it was
// before; a finished one stays. An unread one that a hook has handed to a session, or
// that somebody holds under a lease, counts as Owed: they are to be told.
// ErrBeingTyped while a runner types it.
func (b *Box) Withdraw(ctx context.Context, id wire.ID, by wire.Address) (state State, err error) {
	err = b.moving(ctx, id, func(p place, all claims) error {
		if state = p.state; state != Unread && state != Owed {
			return nil
		}
		if c := all[id]; state == Unread && c.isLive(time.Now(), b.running()) {
			if c.isRunner() {
				return fmt.Errorf("message %s %w to %s", id.Short(6), ErrBeingTyped, b.agent)
			}
			state = Owed
		}
		// An acknowledgement of what was withdrawn is owed no longer.
		return b.move(id, p, b.withdrawn())
	})
	if errors.Is(err, errGone) {
		return Done, nil
	}
	if err != nil || state != Unread && state != Owed {
		return state, err
	}
	// The place is the evidence; that it is not among the events undoes nothing.
	b.note(ctx, wire.Event{Kind: wire.EventWithdrawn, Source: "cli"}.With("id", string(id)).With("by", by.String()))
	return state, nil
}
