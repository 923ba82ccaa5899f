package maildir

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
)

// Inbox is a mailbox's inbox that is open for messages: files in it are reached without the path to it.
type Inbox struct {
	*durable.Root
	box *Box
}

// openInbox opens the inbox, with the directory in which messages are written, and checks that the mailbox's owner will be
// able to read them.
func (b *Box) openInbox() (*Inbox, error) {
	in := &Inbox{box: b}
	err := b.makeOutbox()
	if err == nil {
		in.Root, err = b.store.root.Sub(b.In("inbox"))
	}
	if durable.IsAbsent(err) {
		err = cmp.Or(b.CheckPresent(), b.noAgent())
	}
	if err != nil {
		return nil, err
	}
	if in.IsDir("tmp") != nil {
		err = b.Mkdir(b.In("inbox/tmp"))
	}
	if err == nil && !in.OwnerCanRead("tmp") {
		err = ErrUnreadable
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// Lock takes the inbox lock, if the open inbox is the mailbox's still, and not one that was retired meanwhile.
func (in *Inbox) Lock(ctx context.Context, m lockfile.Mode) (unlock func(), err error) {
	return in.box.store.Lock(ctx, in.box.LockName("inbox"), m, in.checkPresent)
}

func (in *Inbox) checkPresent() error {
	open, err := in.Lstat(".")
	now, nowErr := in.box.store.root.Lstat(in.box.In("inbox"))
	if durable.IsAbsent(nowErr) || err == nil && nowErr == nil && !os.SameFile(open, now) {
		return in.box.noAgent() // even if one of that name is back by now
	}
	return cmp.Or(err, nowErr)
}

// InParallel calls f for all, 16 at a time: their syncs then share the disk's flushes.
func InParallel[T any](all []T, f func(T)) {
	if len(all) == 1 {
		f(all[0]) // a goroutine would cost a single delivery a visible thread switch
		return
	}
	for some := range slices.Chunk(all, 16) {
		var wg sync.WaitGroup
		for _, x := range some {
			wg.Go(func() { f(x) })
		}
		wg.Wait()
	}
}
