package maildir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/wire"
)

// AfterRead returns the folder of a message once it is read: cur if it asks for an acknowledgement, else done.
func (b *Box) AfterRead(m *wire.Message) Folder {
	if m.RequiresAck {
		return b.Owed()
	}
	return b.Done(m.ID)
}

// MoveToRead moves an unread message to its folder after reading, or returns ErrNotFound if it is not unread. The caller
// holds the reader lock.
func (b *Box) MoveToRead(id wire.ID) (*wire.Item, error) {
	from, isThere, err := b.Locate(id)
	if err == nil && (!isThere || from.State != wire.Unread) {
		err = notFound(id)
	}
	if err != nil {
		return nil, err
	}
	it, err := b.Open(from, id)
	if err != nil {
		return nil, err
	}
	return it, b.Move(id, from, b.AfterRead(it.Message))
}

// ReadEvent returns the event that says that a message was read, as one of a batch.
func (b *Box) ReadEvent(it *wire.Item, batch wire.ID) wire.Event {
	return b.WithType(Event(wire.SourceCLI, wire.EventRead, it.ID).With("batch", string(batch)), it)
}

// WithType adds to an event the type of a message that a person writes to the agent in a session, and which session: it
// answers what the agent has asked. A verdict or an abort does not, nor what is the agent's own.
func (b *Box) WithType(e wire.Event, it *wire.Item) wire.Event {
	if it.Kind() != wire.TypeHumanInput || it.From == b.Address() {
		return e
	}
	if _, by := it.FromAgent(); by == b.Address() {
		return e
	}
	said, _ := wire.ReadObject(it.Payload) // without one the body is the message
	if kind := said.Text("input_type"); kind != "" && kind != "message" {
		return e
	}
	if id := it.MetaString(wire.FieldSession); id != "" {
		e = e.With(wire.FieldSession, id)
	}
	return e.With("type", wire.TypeHumanInput)
}

// chooseFolder returns the folder to which a message is to be moved, which may be the present one, and the events to log.
type chooseFolder func(from Folder) (to Folder, events []wire.Event, err error)

// moveTo moves a message to the folder that choose returns, under the reader lock, and logs the events. It returns
// ErrNotFound if there is no such message.
func (b *Box) moveTo(ctx context.Context, id wire.ID, choose chooseFolder) error {
	var logged []wire.Event
	err := b.Locked(ctx, "reader", func() error {
		for range maxCopies { // each but the first is a duplicate, which goes to bad
			from, isThere, err := b.Locate(id)
			if err == nil && !isThere {
				err = notFound(id)
			}
			if err != nil {
				return err
			}
			to, events, err := choose(from)
			logged = events
			if err != nil || to == from {
				return err
			}
			if err = b.Move(id, from, to); !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		return notFound(id)
	})
	if err != nil {
		return err
	}
	return b.LogEvents(ctx, logged...)
}

// MarkRead marks a message as read because its owner replies to it. Nothing happens unless it is unread and not leased
// to somebody else.
func (b *Box) MarkRead(ctx context.Context, id wire.ID) error {
	err := b.moveTo(ctx, id, func(from Folder) (Folder, []wire.Event, error) {
		if from.State != wire.Unread || b.CheckLeaseholder(from.Holder(), id, b.Address()) != nil {
			return from, nil, nil
		}
		it, err := b.Open(from, id)
		if err != nil {
			return from, nil, err
		}
		return b.AfterRead(it.Message), []wire.Event{b.ReadEvent(it, wire.NewID())}, nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// MarkAcked moves an owed or unread message to done, and a done one not at all. The ack was delivered to its sender
// before. by is the mailbox's owner or the member who leased the message. Errors: *LeasedError if somebody else has
// leased it, ErrWithdrawn if nothing is owed any more.
func (b *Box) MarkAcked(ctx context.Context, id wire.ID, by wire.Address) error {
	return b.markAcked(ctx, id, by, Event(wire.SourceCLI, wire.EventAcked, id))
}

// MarkAckedAs is MarkAcked with an ack whose outcome the event has; then there is an event for each ack, also of a message
// that was acknowledged before. isSent: the ack was delivered to the sender, who else has no mailbox here.
func (b *Box) MarkAckedAs(ctx context.Context, id wire.ID, by wire.Address, ack *wire.Message, isSent bool) error {
	acked := Event(wire.SourceCLI, wire.EventAcked, id)
	if !isSent {
		acked = acked.With("delivered", false)
	}
	if outcome := ack.Outcome(); outcome != "" {
		acked.EventID = string(ack.ID)
		acked = acked.With("outcome", outcome)
		if ack.Body != "" {
			acked = acked.With("text", wire.Clip(ack.Body, 4096))
		}
	}
	return b.markAcked(ctx, id, by, acked)
}

func (b *Box) markAcked(ctx context.Context, id wire.ID, by wire.Address, acked wire.Event) error {
	return b.moveTo(ctx, id, func(from Folder) (to Folder, events []wire.Event, err error) {
		isMine := by == b.Address()
		switch {
		case from.State == wire.Unread:
			if err := b.CheckLeaseholder(from.Holder(), id, by); err != nil {
				return from, nil, err
			}
			if isMine {
				it, err := b.Open(from, id)
				if err != nil {
					return from, nil, err
				}
				events = append(events, b.ReadEvent(it, wire.NewID()))
			}
		case from.State == wire.Withdrawn:
			return from, nil, Withdrawn(id)
		case from.State == wire.Done && acked.Field("outcome") == "":
			return from, nil, nil
		case from.State == wire.Owed && !isMine:
			return from, nil, NotHeld(id)
		}
		if !isMine {
			acked = acked.With(wire.FieldBy, by.String())
		}
		if to = b.Done(id); from.State == wire.Done {
			to = from
		}
		return to, append(events, acked), nil
	})
}

// EndOwed moves all owed messages to done: nobody is to acknowledge them any more.
func (b *Box) EndOwed(ctx context.Context) error {
	return b.Locked(ctx, "reader", func() error {
		owed, err := b.OwedIDs()
		for _, id := range owed {
			if e := b.Move(id, b.Owed(), b.Done(id)); !errors.Is(e, ErrNotFound) {
				err = errors.Join(err, e)
			}
		}
		return err
	})
}

// MarkUnread puts a message that was read back into new, unclaimed, or returns ErrWithdrawn. A message that was
// acknowledged is owed again after it is read once more; acknowledging it again sends nothing.
func (b *Box) MarkUnread(ctx context.Context, id wire.ID) error {
	return b.putBack(ctx, id, holder.Holder{})
}

// MarkUndone is MarkUnread for a message that was typed into a turn which was undone: the agent may have seen it, so
// the next handover may be a repeat.
func (b *Box) MarkUndone(ctx context.Context, id wire.ID) error {
	return b.putBack(ctx, id, holder.New(holder.Runner, "", "", time.Now()).Ended())
}

func (b *Box) putBack(ctx context.Context, id wire.ID, last holder.Holder) error {
	return b.Locked(ctx, "inbox", func() error {
		return b.moveTo(ctx, id, func(from Folder) (Folder, []wire.Event, error) {
			switch from.State {
			case wire.Unread:
				if from.Holder().Kind == holder.Aside { // it is given out again
					return b.Unread(), nil, nil
				}
				return from, nil, nil
			case wire.Withdrawn:
				return from, nil, fmt.Errorf("%s %w", id.Short(6), ErrWithdrawn)
			}
			return b.HeldBy(last), nil, nil
		})
	})
}

// Withdraw moves an unread message to withdrawn, and returns the state in which it found the message. An unread message
// that a session has counts as Owed, and stays; so does one that a bridge is sending from an outbox.
// A leased one is withdrawn: the caller tells who has it. Error: ErrBeingTyped while a runner types it.
func (b *Box) Withdraw(ctx context.Context, id wire.ID, by wire.Address) (wire.State, error) {
	return b.withdraw(ctx, id, by, func(_ Folder, state wire.State) bool { return state == wire.Unread })
}

// WithdrawRead is Withdraw for a message whose reader was notified: it also moves one that was read. An acknowledged or
// archived one stays; so does one that the reader has acknowledged without being asked, if isAcked says so, which is
// called under the lock and may be nil.
func (b *Box) WithdrawRead(ctx context.Context, id wire.ID, by wire.Address, isAcked func() bool) (wire.State, error) {
	return b.withdraw(ctx, id, by, func(from Folder, state wire.State) bool {
		return state == wire.Unread || b.host == "" && b.isInInbox(from, id) && (isAcked == nil || !isAcked())
	})
}

func (b *Box) withdraw(ctx context.Context, id wire.ID, by wire.Address, mayMove func(Folder, wire.State) bool) (state wire.State, err error) {
	err = b.moveTo(ctx, id, func(from Folder) (Folder, []wire.Event, error) {
		h := from.Holder()
		if state = from.State; h.Kind != "" && h.IsLive(time.Now(), b.IsRunning()) {
			switch h.Kind {
			case holder.Runner:
				return from, nil, fmt.Errorf("message %s %w to %s", id.Short(6), ErrBeingTyped, b.agent)
			case holder.Lease: // a job is its sender's to take back
			default:
				state = wire.Owed
			}
		}
		if !mayMove(from, state) {
			return from, nil, nil
		}
		if state == wire.Done {
			if it, err := b.Open(from, id); err != nil || it.RequiresAck {
				return from, nil, err
			}
		}
		return b.withdrawn(), []wire.Event{Event(wire.SourceCLI, wire.EventWithdrawn, id).With(wire.FieldBy, b.AddressThere(by).String())}, nil
	})
	return state, err
}
