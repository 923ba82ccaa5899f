package mailbox

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// GCOptions say what is old.
type GCOptions struct {
	Before   time.Time // days that ended before this moment
	KeepLast int       // the newest done messages that stay whatever their age
	DryRun   bool
}

// Moved is what gc, backup and restore count.
type Moved struct {
	Messages int   `json:"messages"`
	Events   int   `json:"events,omitempty"`
	Bytes    int64 `json:"bytes"`
	Skipped  int   `json:"skipped"`
}

// Add adds up.
func (m *Moved) Add(o Moved) {
	m.Messages += o.Messages
	m.Events += o.Events
	m.Bytes += o.Bytes
	m.Skipped += o.Skipped
}

// GC moves days of finished messages to the archive, whole: those that ended before a
// moment and hold none of the newest KeepLast. Nothing that is unread or owed is
// touched, nothing is deleted but the leftovers of killed writers. A dry run counts the
// same.
func (b *Box) GC(ctx context.Context, opt GCOptions) (total Moved, err error) {
	err = b.locked(ctx, "reader", func() error {
		days, err := b.days(b.in("inbox/done"))
		if err != nil {
			return err
		}
		kept := 0
		limit := opt.Before.UTC().Format(time.DateOnly)
		for _, day := range slices.Backward(days) {
			ids, _, err := b.list(b.in("inbox/done", day))
			if err != nil {
				return err
			}
			if kept < opt.KeepLast || day >= limit {
				kept += len(ids)
				total.Skipped += len(ids)
				continue
			}
			m, err := b.archiveDay(day, ids, opt.DryRun)
			total.Add(m)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
		}
		if !opt.DryRun {
			b.stale(true)
		}
		return nil
	})
	return total, err
}

// archiveDay moves a day: by one rename, or message by message where the day is in the
// archive already.
func (b *Box) archiveDay(day string, ids []wire.ID, dry bool) (m Moved, err error) {
	root := b.store.root
	from, to := place{Done, b.in("inbox/done", day)}, place{Done, b.archived("done", day)}
	for _, id := range ids {
		if info, err := root.Lstat(from.file(id)); err == nil {
			m.Messages++
			m.Bytes += info.Size()
		}
	}
	if dry {
		return m, nil
	}
	if err := b.mkdir(b.archived("done")); err != nil {
		return Moved{}, err
	}
	err = root.Move(from.dir, to.dir)
	if absent(err) {
		return Moved{}, nil // somebody moved it away
	}
	if !errors.Is(err, fs.ErrExist) {
		return m, err
	}
	for _, id := range ids {
		if err := b.move(id, from, to); err != nil && err != errGone {
			return m, err
		}
	}
	root.Remove(from.dir) // stays if anything foreign is in it
	return m, nil
}

// tempAge is how long an unfinished file stays.
const tempAge = 36 * time.Hour

// stale lists what was being written and has not been touched for 36 hours: the
// leftovers of killed writers. With remove they go. Dropped files that are being taken
// in are mail, and never stale.
func (b *Box) stale(remove bool) (stale []string) {
	root, before := b.store.root, time.Now().Add(-tempAge)
	dirs := []string{b.in(), b.in("run"), b.in("events"), b.in("inbox/bad"), b.in("sent/once"), filesDir, ".sessions"}
	days, _ := b.days(b.in("sent"))
	for _, day := range days {
		dirs = append(dirs, b.in("sent", day))
	}
	for _, dir := range dirs {
		stale = append(stale, root.Stale(dir, before)...)
	}
	names, _ := root.Names(b.in("inbox/tmp"))
	for _, name := range names {
		file := b.in("inbox/tmp", name)
		info, err := root.Lstat(file)
		isTemp := len(name) >= 36 && wire.IsID(name[:36]) && !strings.HasSuffix(name, ".drop")
		if isTemp && err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			stale = append(stale, file)
		}
	}
	for _, file := range stale {
		if remove {
			root.Remove(file)
		}
	}
	return stale
}
