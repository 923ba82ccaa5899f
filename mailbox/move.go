package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/wire"
)

// afterRead is where a message goes that has been read: cur when an acknowledgement is asked for, else done.
func (b *Box) afterRead(m *wire.Message) place {
	if m.RequiresAck && !b.HasAcked(m.ID) {
		return b.owed()
	}
	return b.done(m.ID)
}

// markRead moves an unread message that has been read. ErrNotFound when it is no longer in new. The reader's lock is held.
func (b *Box) markRead(id wire.ID) error {
	it, err := b.open(b.unread(), id, nil)
	if err != nil {
		return err
	}
	return b.move(id, b.unread(), b.afterRead(it.Message))
}

func readEvent(id, batch wire.ID) wire.Event {
	return event("cli", wire.EventRead, id).With("batch", string(batch))
}

// moving moves a message to where f says, under the reader's lock, and then appends the events. f gets its
// place, where it may stay, and its claim. ErrNotFound when the message is nowhere.
func (b *Box) moving(ctx context.Context, id wire.ID, f func(at place, c claim) (to place, said []wire.Event, err error)) error {
	var said []wire.Event
	err := b.locked(ctx, "reader", func() error {
		at, there, err := b.locate(id)
		if err == nil && !there {
			err = notFound(id)
		}
		all, e := b.claimsToChange()
		if err := cmp.Or(err, e); err != nil {
			return err
		}
		to, events, err := f(at, all[id])
		if err != nil || to == at {
			return err
		}
		said = events
		return b.move(id, at, to)
	})
	if err != nil {
		return err
	}
	return b.note(ctx, said...)
}

// MarkRead marks an unread message as read, for who replies to it: what was not unread stays, and what
// somebody holds under a lease stays theirs.
func (b *Box) MarkRead(ctx context.Context, id wire.ID) error {
	err := b.moving(ctx, id, func(at place, c claim) (place, []wire.Event, error) {
		if at.state != Unread || b.leasedTo(c, id, b.Address()) != nil {
			return at, nil, nil
		}
		it, err := b.open(at, id, nil)
		if err != nil {
			return at, nil, err
		}
		return b.afterRead(it.Message), []wire.Event{readEvent(id, wire.NewID())}, nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// MarkAcked ends the debt of an acknowledgement: cur (or new) to done, after the ack has reached the sender. delivered
// says whether it did; a sender without a mailbox here gets none. by is who acknowledges: the mailbox's owner, or who
// holds the message under a lease. Again: nothing. *LeasedError: somebody else holds it.
// ErrWithdrawn: there is no debt.
func (b *Box) MarkAcked(ctx context.Context, id wire.ID, by wire.Address, delivered bool) error {
	return b.moving(ctx, id, func(at place, c claim) (to place, said []wire.Event, err error) {
		isMine := by == b.Address()
		switch {
		case at.state == Unread:
			if err := b.leasedTo(c, id, by); err != nil {
				return at, nil, err
			}
			if isMine {
				said = append(said, readEvent(id, wire.NewID()))
			}
		case at.state == Withdrawn:
			return at, nil, fmt.Errorf("message %s %w", id.Short(6), ErrWithdrawn)
		case at.state != Owed:
			return at, nil, nil
		case !isMine:
			return at, nil, notHeld(id)
		}
		acked := event("cli", wire.EventAcked, id)
		if !isMine {
			acked = acked.With("by", by.String())
		}
		if !delivered {
			acked = acked.With("delivered", false)
		}
		return b.done(id), append(said, acked), nil
	})
}

// MarkUnread puts a message that was read back into new, in nobody's hands; one that is unread already stays.
// ErrWithdrawn for one that was withdrawn. One that was acknowledged is not owed again when it is read once more.
func (b *Box) MarkUnread(ctx context.Context, id wire.ID) error { return b.putBack(ctx, id, claim{}) }

// MarkUndone is MarkUnread for what was typed into a turn that is undone: the agent may have seen it, and when
// it is handed over again that may be a repeat.
func (b *Box) MarkUndone(ctx context.Context, id wire.ID) error {
	now := claimNow()
	return b.putBack(ctx, id, claim{Owner: ownerRunner, At: now, Until: now, Times: 1})
}

func (b *Box) putBack(ctx context.Context, id wire.ID, c claim) error {
	return b.locked(ctx, "inbox", func() error {
		return b.moving(ctx, id, func(at place, _ claim) (place, []wire.Event, error) {
			switch at.state {
			case Unread:
				return at, nil, nil
			case Withdrawn:
				return at, nil, fmt.Errorf("%s %w", id.Short(6), ErrWithdrawn)
			}
			// A claim from before it was read would be live again.
			return b.unread(), nil, b.changeClaims(func(all claims) error { all[id] = c; return nil })
		})
	})
}

// Withdraw takes a message that is unread or, once its reader is told so, read and not acknowledged, out of the mailbox
// and keeps it as withdrawn. It returns the state in which it found the message: Withdrawn where it was so before; a
// finished one stays. An unread one that a hook has handed to a session counts as Owed. So does one that a bridge has
// taken from an outbox, which stays.
// *LeasedError while somebody holds it, ErrBeingTyped while a runner types it.
func (b *Box) Withdraw(ctx context.Context, id wire.ID, by wire.Address, isTold bool) (state State, err error) {
	err = b.moving(ctx, id, func(at place, c claim) (place, []wire.Event, error) {
		if state = at.state; state == Unread && c.isLive(time.Now(), b.running()) {
			if c.isRunner() {
				return at, nil, fmt.Errorf("message %s %w to %s", id.Short(6), ErrBeingTyped, b.agent)
			}
			if c.isLease() {
				return at, nil, &LeasedError{id, b.leaseOf(c)}
			}
			state = Owed
		}
		if state != Unread && (state != Owed || !isTold || b.host != "") {
			return at, nil, nil
		}
		// An acknowledgement of what was withdrawn is owed no longer.
		return b.withdrawn(), []wire.Event{event("cli", wire.EventWithdrawn, id).With("by", by.String())}, nil
	})
	return state, err
}
