package appserver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/wire"
)

// Way is a way into a thread, as delivery.Way: the server's queue, from which a text begins the next turn, or, with a Turn,
// that turn. What lies in the queue can be taken back.
type Way struct {
	*Client
	Thread string
	Turn   string // "": the queue
}

var _ delivery.Way = Way{}

// MaxItems is how many of a thread's last items are looked through for a message of ours.
const MaxItems = 100

func (w Way) Look(ctx context.Context) error {
	thread, err := w.Read(ctx, w.Thread)
	if err == nil && w.Turn == "" && !thread.Status.IsIdle() {
		err = fmt.Errorf("its conversation is %q", thread.Status.Type)
	}
	return err
}

func (w Way) Put(ctx context.Context, t delivery.Text) (err error) {
	if w.Turn != "" {
		err = w.Steer(ctx, w.Thread, w.Turn, string(t.ID), t.Body)
	} else {
		_, err = w.QueueAdd(ctx, w.Thread, string(t.ID), t.Body)
	}
	if err != nil && !IsRefusal(err) {
		err = fmt.Errorf("%w: %w", delivery.ErrUnsure, err)
	}
	return err
}

// Has also reports what lies in the queue.
func (w Way) Has(ctx context.Context, id wire.ID) (bool, error) {
	queued, err := w.QueueList(ctx, w.Thread) // first: what leaves it meanwhile is among the items
	if err != nil || slices.ContainsFunc(queued, func(q Queued) bool { return q.ClientID == string(id) }) {
		return err == nil, err
	}
	items, err := w.Items(ctx, w.Thread, MaxItems)
	if IsRefusal(err) { // it has none yet
		return false, nil
	}
	return slices.ContainsFunc(items, func(i Item) bool { return i.ClientID == string(id) }), err
}

func (w Way) TakeBack(ctx context.Context, id wire.ID) (bool, error) {
	queued, err := w.QueueList(ctx, w.Thread)
	for _, q := range queued {
		if q.ClientID == string(id) {
			deleted, err := w.QueueDelete(ctx, w.Thread, q.ID)
			if IsRefusal(err) {
				err = nil
			}
			return deleted, err
		}
	}
	return false, err
}

// IsRefusal reports whether the server has answered that it does not do what it was asked.
func IsRefusal(err error) bool {
	_, is := errors.AsType[*RefusedError](err)
	return is
}
