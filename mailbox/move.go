package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Take marks an unread message as read, for who replies to it or acknowledges
// it: new to cur or done. It reports whether it did: what was not unread stays,
// and what somebody else holds under a lease stays theirs.
func (b *Box) Take(ctx context.Context, id wire.ID) (bool, error) {
	unlock, err := b.lock(ctx, "reader", lockfile.Exclusive)
	if err != nil {
		return false, err
	}
	moved, err := func() (bool, error) {
		defer unlock()
		r, err := b.enter()
		if err != nil {
			return false, err
		}
		defer r.close()
		it, err := r.open(place{placeNew, "inbox/new"}, id)
		if errors.Is(err, errGone) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		err = r.settleFree(it.Message)
		if errors.Is(err, errGone) {
			return false, nil
		}
		return true, err
	}()
	if err != nil || !moved {
		return moved, err
	}
	return true, unlogged(b.Append(ctx, AppendOptions{}, readEvent(id, wire.NewID())))
}

// UnloggedError says that something was done and could not be noted among the
// events.
type UnloggedError struct{ Err error }

func (e *UnloggedError) Error() string {
	return "done, but not noted in the event log: " + e.Err.Error()
}
func (e *UnloggedError) Unwrap() error { return e.Err }

func unlogged(err error) error {
	if err == nil {
		return nil
	}
	return &UnloggedError{err}
}

// Settle ends the debt of an acknowledgement: cur (or new) to done, after the
// ack has reached the sender. delivered says whether it did; a sender without
// a mailbox here gets none. Again: nothing.
//
// What somebody else holds under a lease stays theirs: *LeasedError.
func (b *Box) Settle(ctx context.Context, id wire.ID, delivered bool) error {
	return b.settled(ctx, id, delivered, "", func(r *room, p place) error {
		if p.name == placeNew {
			return r.ownersTo(id)
		}
		return nil
	})
}

// settled is Settle if may, which is asked under the lock, has nothing against it;
// by goes into the event.
func (b *Box) settled(ctx context.Context, id wire.ID, delivered bool, by string, may func(*room, place) error) error {
	was := ""
	err := b.moving(ctx, id, func(r *room, p place) error {
		if err := may(r, p); err != nil || p.name != placeNew && p.name != placeAside && p.name != placeCur {
			return err
		}
		was = p.name
		if err := r.move(id, p, place{placeDone, "inbox/done/" + id.Day()}); err != nil {
			return err
		}
		switch was { // a file that stays is cleared away by who takes next
		case placeNew:
			r.dropLease(leasesDir, id)
		case placeAside:
			r.dropLease(asideDir, id)
		}
		return nil
	})
	if err != nil || was == "" {
		return err
	}
	var events []wire.Event
	if by == "" && (was == placeNew || was == placeAside) { // who held it is not its owner, who has read nothing
		events = append(events, readEvent(id, wire.NewID()))
	}
	acked := wire.Event{Kind: wire.EventAcked, Source: "cli"}.With("id", string(id))
	if by != "" {
		acked = acked.With("by", by)
	}
	if !delivered {
		acked.Extra = append(acked.Extra, wire.Field{Key: "delivered", Raw: []byte("false")})
	}
	return unlogged(b.Append(ctx, AppendOptions{}, append(events, acked)...))
}

// moving calls f with the place of a message, under the reader's lock.
// ErrNotFound when it is nowhere.
func (b *Box) moving(ctx context.Context, id wire.ID, f func(r *room, p place) error) error {
	unlock, err := b.lock(ctx, "reader", lockfile.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := b.enter()
	if err != nil {
		return err
	}
	defer r.close()
	p, ok, err := r.locate(id)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	return f(r, p)
}

// Unread puts a message that was read, or set aside, back into new. Who took it
// before is forgotten. It reports whether it
// did; a message that is unread already stays. ErrSettled for one that was
// withdrawn. One that was acknowledged by an ack is not owed again when it is
// read once more.
func (b *Box) Unread(ctx context.Context, id wire.ID) (moved bool, err error) {
	unlock, err := b.lock(ctx, "inbox", lockfile.Exclusive)
	if err != nil {
		return false, err
	}
	defer unlock()
	err = b.moving(ctx, id, func(r *room, p place) error {
		switch p.name {
		case placeNew:
			return nil
		case placeWithdrawn:
			return fmt.Errorf("%s was withdrawn by its sender: %w", id.Short(6), ErrSettled)
		}
		moved = true
		// First: in new again, an old lease would hold it.
		if err := r.dropLease(leasesDir, id); err != nil {
			return err
		}
		if err := r.move(id, p, place{placeNew, "inbox/new"}); err != nil {
			return err
		}
		if p.name == placeAside {
			r.dropLease(asideDir, id)
		}
		if it, err := r.open(place{placeNew, "inbox/new"}, id); err == nil {
			_ = r.noteExpiry(it.Message) // it counts as expired, or as unread
		}
		return nil
	})
	return moved && err == nil, err
}

// Withdraw takes a message that is unread, or read and not acknowledged, out of
// the mailbox and keeps it as withdrawn. It returns the state in which it found
// the message: Unread and Owed mean that it was withdrawn now, Withdrawn that
// it was before; a finished one stays. An unread one that a hook has handed to a
// session counts as Owed: its reader is to be told. ErrBeingTyped while a runner
// types it.
func (b *Box) Withdraw(ctx context.Context, id wire.ID, by wire.Address) (state State, err error) {
	err = b.moving(ctx, id, func(r *room, p place) error {
		state = stateOf(p.name)
		switch p.name {
		case placeAside:
			state = Unread // nobody has it in hand
		case placeNew, placeCur:
		default:
			return nil
		}
		if p.name == placeNew {
			typed, handed, err := r.inHands(time.Now())
			switch {
			case err != nil:
				return err
			case typed[id]:
				return fmt.Errorf("message %s %w to %s", id.Short(6), ErrBeingTyped, b.agent)
			case handed[id]:
				state = Owed // a session has it before its eyes
			case r.held(r.box.store.now())[id]:
				state = Owed // somebody works on it
			}
		}
		// An acknowledgement of what was withdrawn is owed no longer.
		err := r.move(id, p, place{placeWithdrawn, "inbox/withdrawn"})
		if errors.Is(err, errGone) {
			state, err = Done, nil
		}
		return err
	})
	if err != nil || state != Unread && state != Owed {
		return state, err
	}
	// The place is the evidence; that it is not among the events undoes nothing.
	b.Append(ctx, AppendOptions{}, wire.Event{Kind: wire.EventWithdrawn, Source: "cli"}.
		With("id", string(id)).With("by", by.String()))
	return state, nil
}
