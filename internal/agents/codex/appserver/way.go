package appserver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/wire"
)

// Way is a way into a thread, as delivery.Way. A text lies in the server's queue until the running turn is over, and begins
// the next; an urgent one goes into the running turn, and cuts off what the model writes. What lies in the queue can be taken
// back. It connects to the server for each call.
type Way struct{ Socket, Thread string }

var _ delivery.Way = Way{}

// maxItems is how many of a thread's last items are looked through for a message of ours.
const maxItems = 100

func (w Way) Look(ctx context.Context) error {
	return w.with(ctx, func(c *Client) error {
		thread, err := c.Read(ctx, w.Thread)
		if err == nil && thread.Status.Type == NotLoaded {
			err = ErrNotLoaded
		}
		return err
	})
}

func (w Way) Put(ctx context.Context, t delivery.Text) error {
	return w.with(ctx, func(c *Client) error {
		if t.IsUrgent {
			if err := w.steer(ctx, c, t); !IsRefusal(err) {
				return err
			}
		}
		_, err := c.QueueAdd(ctx, w.Thread, string(t.ID), t.Body)
		if err == nil {
			c.QueueStart(ctx, w.Thread) // is refused while a turn runs, after which the queue goes on by itself
		}
		return unsure(err)
	})
}

// steer puts a text into the running turn. It is refused if none runs.
func (w Way) steer(ctx context.Context, c *Client, t delivery.Text) error {
	turns, err := c.Turns(ctx, w.Thread, 1)
	switch {
	case err != nil:
		return err // such as before the first prompt
	case len(turns) == 0 || turns[0].Status != InProgress:
		return &RefusedError{"no turn runs"}
	}
	return unsure(c.Steer(ctx, w.Thread, turns[0].ID, string(t.ID), t.Body))
}

// unsure marks an error of a request after which the server may have the text.
func unsure(err error) error {
	if err != nil && !IsRefusal(err) {
		err = fmt.Errorf("%w: %w", delivery.ErrUnsure, err)
	}
	return err
}

// Has also reports what lies in the queue.
func (w Way) Has(ctx context.Context, id wire.ID) (has bool, err error) {
	err = w.with(ctx, func(c *Client) error {
		queued, err := c.QueueList(ctx, w.Thread) // first: what leaves it meanwhile is among the items
		if has = slices.ContainsFunc(queued, func(q Queued) bool { return q.ClientID == string(id) }); has || err != nil {
			return err
		}
		items, err := c.Items(ctx, w.Thread, maxItems)
		if IsRefusal(err) { // it has none yet
			err = nil
		}
		has = slices.ContainsFunc(items, func(i Item) bool { return i.ClientID == string(id) })
		return err
	})
	return has, err
}

func (w Way) TakeBack(ctx context.Context, id wire.ID) (isBack bool, err error) {
	err = w.with(ctx, func(c *Client) error {
		queued, err := c.QueueList(ctx, w.Thread)
		i := slices.IndexFunc(queued, func(q Queued) bool { return q.ClientID == string(id) })
		if i < 0 {
			return err
		}
		if isBack, err = c.QueueDelete(ctx, w.Thread, queued[i].ID); IsRefusal(err) {
			err = nil
		}
		return err
	})
	return isBack, err
}

// with calls do with a connection to the server.
func (w Way) with(ctx context.Context, do func(*Client) error) error {
	c, err := Dial(ctx, w.Socket)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// IsRefusal reports whether the server has answered that it does not do what it was asked.
func IsRefusal(err error) bool {
	_, is := errors.AsType[*RefusedError](err)
	return is
}
