package mailbox

import (
	"context"
	"errors"

	"github.com/agentteammail/atm/wire"
)

// View is a mailbox held open for who looks into it often, such as a watcher:
// opening it by path is most of what Get costs. A mailbox that is moved away
// or replaced meanwhile is still the one that was opened; whoever holds a view
// finds that out. It may be used by several goroutines at once.
type View struct{ room *room }

// Open opens the mailbox.
func (b *Box) Open() (*View, error) {
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	return &View{r}, nil
}

// Close lets go of the mailbox.
func (v *View) Close() { v.room.close() }

// Get is Box.Get, and quick for a message that is unread.
func (v *View) Get(id wire.ID) (*Item, error) {
	it, err := v.room.open(place{placeNew, "inbox/new"}, id)
	if errors.Is(err, errGone) {
		return v.room.box.Get(id)
	}
	return it, err
}

// Unread lists new: it calls id with each message, and foreign with each other
// name that may be a dropped file, in no order, keeping none.
func (v *View) Unread(id func(wire.ID), foreign func(name string)) error {
	return list(v.room.fresh, id, foreign)
}

// TakeInNamed is TakeIn for a caller who knows what foreign names there are in
// new, which is not listed then.
func (b *Box) TakeInNamed(ctx context.Context, foreign ...string) (Taken, error) {
	return b.takeIn(ctx, foreign)
}
