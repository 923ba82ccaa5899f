package maildir

import (
	"context"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Waiting reports whether HandOver would hand something over now, if the store may act, and whether other messages are on
// their way into the program: if whoever gives them is killed, they wait, too. Dropped files are ingested first.
func (b *Box) Waiting(ctx context.Context, opt ReadOptions) (isWaiting, isBeingGiven bool, err error) {
	ids, err := b.lookForHook(ctx)
	if err != nil || len(ids) == 0 {
		return false, false, err
	}
	all, now := b.claims(), time.Now()
	skipped, _ := all.notForHooks(ids, now, b.isRunning())
	isBeingGiven = slices.ContainsFunc(ids, func(id wire.ID) bool { return skipped[id].isLive(now, false) && skipped[id].isBeingGiven() })
	opt.IDs, opt.Limit, opt.countsAll = ids, 1, true
	batch, err := b.choose(opt, all, skipped)
	return len(batch.Items) > 0, isBeingGiven, err
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
