package mailbox

import (
	"context"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// What becomes of a message under a lease is told among the mailbox's events:
// message_taken when it is had, message_returned when that ended and it is free
// again, message_aside when nobody is given it any more. The files are the
// truth and the events evidence: each is appended after the change, known by the
// taking's key so that a repeat is once, and one that cannot be appended undoes
// nothing. Of a lease that ran out nobody knows but the clock; it is told by who
// takes the message next, or sets it aside.

// underLease is underReader for what says something in the room: that is
// appended when the lock is let go of, also where f has failed in the middle.
func (b *Box) underLease(ctx context.Context, f func(*room) error) error {
	var said []wire.Event
	err := b.underReader(ctx, func(r *room) error {
		err := f(r)
		said = r.said
		return err
	})
	b.tell(ctx, said)
	return err
}

// tell appends what was said in a room, which may be held still.
func (b *Box) tell(ctx context.Context, said []wire.Event) {
	if len(said) > 0 {
		_ = b.Append(context.WithoutCancel(ctx), AppendOptions{}, said...)
	}
}

func (r *room) says(e wire.Event) { r.said = append(r.said, e) }

// leaseEvent is an event about a taking of a message.
func leaseEvent(kind string, id wire.ID, k *Taking) wire.Event {
	e := wire.Event{Kind: kind, Source: "cli"}.With("id", string(id))
	if k != nil {
		e = e.With("by", k.By.String())
		e.EventID = kind + "/" + string(k.Key)
	}
	return e
}

// hadBy tells that a message is in somebody's hands; tries counts this one.
func (r *room) hadBy(id wire.ID, k *Taking, tries int) {
	r.says(withNumber(leaseEvent(wire.EventTaken, id, k).With("lease", k.For.String()), "try", tries))
}

// freed tells that a taking has ended, unless nothing of it was told.
func (r *room) freed(id wire.ID, k *Taking) {
	if k != nil && !k.Showing {
		how := k.End()
		how = strings.ToValidUTF8(how[:min(len(how), 200)], "")
		r.says(leaseEvent(wire.EventReturned, id, k).With("how", how))
	}
}

// gaveUp tells that a message was set aside.
func (r *room) gaveUp(id wire.ID, t *Takings) {
	e := leaseEvent(wire.EventAside, id, t.Last())
	r.says(withNumber(e, "tries", t.Tries()))
}

func withNumber(e wire.Event, key string, n int) wire.Event {
	e.Extra = append(e.Extra[:len(e.Extra):len(e.Extra)], wire.Field{Key: key, Raw: strconv.AppendInt(nil, int64(n), 10)})
	return e
}
