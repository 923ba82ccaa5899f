package maildir

import (
	"context"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Waiting returns how many messages HandOver would hand over now, if the store may act, and whether others are on their way
// into the program: if whoever gives them is killed, they wait, too. Dropped files are ingested first.
func (b *Box) Waiting(ctx context.Context, opt ReadOptions) (n int, isBeingGiven bool, err error) {
	limited, stop := context.WithTimeout(ctx, hookIngestTime)
	b.ingestUnlessMail(limited) // what cannot be ingested now stays where it is
	stop()
	mayAct := b.store.BeforeLook()
	ids, err := b.UnreadIDs()
	if err != nil || len(ids) == 0 {
		return 0, false, err
	}
	if err := mayAct(ctx); err != nil {
		return 0, false, err
	}
	all := b.claims()
	skipped := all.live(time.Now(), b.isRunning())
	isBeingGiven = slices.ContainsFunc(ids, func(id wire.ID) bool { return skipped[id].isBeingGiven() })
	for id, c := range all {
		if c.isGivenUp() {
			skipped[id] = c
		}
	}
	opt.IDs, opt.changesNothing, opt.countsAll = append([]wire.ID{}, ids...), true, true
	batch, err := b.choose(opt, all, skipped)
	return len(batch.Items) + batch.More, isBeingGiven, err
}

// LockWake takes the lock of the process that waits to wake the agent's program: one is enough.
func (b *Box) LockWake(ctx context.Context) (unlock func(), err error) { return b.lock(ctx, "wake") }

// NoteWake notes in run/woken that the agent's program is woken for its mail, unless it was within that time: then
// isFirst is false.
func (b *Box) NoteWake(ctx context.Context, within time.Duration) (isFirst bool, err error) {
	err = b.locked(ctx, "reader", func() error {
		last, err := b.store.root.Lstat(b.in("run/woken"))
		if err == nil && time.Since(last.ModTime()).Abs() < within {
			return nil
		}
		isFirst = true
		if err := b.mkdir(b.in("run")); err != nil {
			return err
		}
		return b.store.root.Replace(b.in("run/woken"), nil, false)
	})
	return isFirst, err
}
