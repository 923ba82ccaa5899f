package mail

import (
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// tick is how often what writes no event is looked at: a runner that was killed, a lease
// that ran out.
const tick = time.Second

var errTimeout = errors.New("waited in vain")

// An entry is something new in a mailbox; the empty one: only time has passed.
type entry = watcher.Entry

// watched are mailboxes to watch, and after which event.
type watched map[*mailbox.Box]uint64

// watchMail watches a mailbox for messages: no event comes after that number.
func watchMail(box *mailbox.Box) watched { return watched{box: ^uint64(0) >> 2} }

// await calls look until it is done: at once, with everything that is new in the
// mailboxes since then, and at each tick. A timeout of 0 is for ever; errTimeout.
func await(ctx context.Context, boxes watched, timeout time.Duration, look func(entry) (done bool, err error)) error {
	// Messages even where only events count: a dropped file may be either.
	options := watcher.Options{Messages: true, Events: true, After: map[wire.Address]uint64{}}
	var list []*mailbox.Box
	for box, after := range boxes {
		old, known := options.After[box.Address()]
		if !known {
			list = append(list, box)
			old = after
		}
		options.After[box.Address()] = min(old, after)
	}
	w, err := watcher.Open(ctx, list, options)
	if err != nil {
		return err
	}
	defer w.Close()
	limited, cancel := context.WithCancel(ctx)
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	var e entry
	for {
		done, err := look(e)
		switch {
		case done || err != nil && !errors.Is(err, mailbox.ErrNoAgent): // a directory that is moved may come back
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case limited.Err() != nil:
			return errTimeout
		}
		next, stop := context.WithTimeout(limited, tick)
		e, err = w.Next(next)
		stop()
		if err != nil && next.Err() == nil {
			return err
		}
	}
}
