package claim

import (
	"context"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// Waiting reports whether HandOver would hand something over now, if the store may act, and whether other messages are on
// their way into the program: if whoever gives them is killed, they wait, too. Dropped files are ingested first.
func Waiting(ctx context.Context, b *maildir.Box, opt inbox.ReadOptions) (isWaiting, isBeingGiven bool, err error) {
	ids, err := lookForHook(ctx, b)
	if err != nil || len(ids) == 0 {
		return false, false, err
	}
	all, now := b.Claims(), time.Now()
	skipped, _ := notForHooks(all, ids, now, b.IsRunning())
	isBeingGiven = slices.ContainsFunc(ids, func(id wire.ID) bool { return skipped[id].IsLive(now, false) && skipped[id].IsBeingGiven() })
	opt.IDs, opt.Limit, opt.CountsAll = ids, 1, true
	batch, err := inbox.Choose(b, opt, all, skipped)
	return len(batch.Items) > 0, isBeingGiven, err
}

// LockWake takes the lock of the process that waits to wake the agent's program: one is enough.
func LockWake(ctx context.Context, b *maildir.Box) (unlock func(), err error) {
	return b.Lock(ctx, "wake")
}

// NoteWake notes in run/woken that the agent's program is woken for its mail, unless it was within that time: then
// isFirst is false.
func NoteWake(ctx context.Context, b *maildir.Box, within time.Duration) (isFirst bool, err error) {
	err = b.Locked(ctx, "reader", func() error {
		last, err := b.Store().Dir().Lstat(b.In("run/woken"))
		if err == nil && time.Since(last.ModTime()).Abs() < within {
			return nil
		}
		isFirst = true
		if err := b.Mkdir(b.In("run")); err != nil {
			return err
		}
		return b.Store().Dir().Replace(b.In("run/woken"), nil, false)
	})
	return isFirst, err
}
