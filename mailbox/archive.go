package mailbox

import (
	"context"
	"errors"
	"io/fs"
	"path"
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

func (m *Moved) Add(o Moved) {
	m.Messages += o.Messages
	m.Events += o.Events
	m.Bytes += o.Bytes
	m.Skipped += o.Skipped
}

// GC moves days of finished messages to the archive, whole: those that ended before a moment and hold none of the
// newest KeepLast. Nothing that is unread or owed is touched, nothing is deleted but the leftovers of killed writers,
// and what says of old messages that are not in the inbox that they are superseded. A dry run counts the same.
func (b *Box) GC(ctx context.Context, opt GCOptions) (total Moved, err error) {
	err = b.locked(ctx, "reader", func() error {
		days, err := b.days(b.allDone(), time.Time{})
		limit := opt.Before.UTC().Format(time.DateOnly)
		for _, day := range slices.Backward(days) {
			ids, e := b.list(day)
			// The days from the newest on are kept until there are enough.
			if e != nil || total.Skipped < opt.KeepLast || path.Base(day.dir) >= limit {
				total.Skipped += len(ids)
			} else if e = ctx.Err(); e == nil {
				e = b.archiveDay(day, ids, opt.DryRun, &total)
			}
			err = errors.Join(err, e) // a day that cannot be moved keeps no other
		}
		if err == nil && !opt.DryRun {
			b.stale(true)
			b.forgetSuperseded(limit)
		}
		return err
	})
	return total, err
}

// archiveDay moves a day: by one rename, or message by message where the day is in the archive already.
func (b *Box) archiveDay(from place, ids []wire.ID, dry bool, total *Moved) error {
	root, to := b.store.root, b.archive().day(path.Base(from.dir))
	var m Moved
	for _, id := range ids {
		if info, err := root.Lstat(from.file(id)); err == nil {
			m.Add(Moved{Messages: 1, Bytes: info.Size()})
		}
	}
	if dry {
		total.Add(m)
		return nil
	}
	if err := b.mkdir(b.archive().dir); err != nil {
		return err
	}
	err := root.Move(from.dir, to.dir)
	if absent(err) {
		return nil // somebody moved it away
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
		for _, id := range ids {
			if e := b.move(id, from, to); !errors.Is(e, ErrNotFound) {
				err = errors.Join(err, e)
			}
		}
		root.Remove(from.dir) // stays if anything foreign is in it
	}
	if err == nil {
		total.Add(m)
	}
	return err
}

// TempAge is how old what a killed writer left must be before it is removed.
const TempAge = 36 * time.Hour

// stale lists what was being written and has not been touched for 36 hours: the leftovers of killed
// writers. With remove they go. Dropped files that are being taken in are mail, and never stale.
func (b *Box) stale(remove bool) (stale []string) {
	root, before := b.store.root, time.Now().Add(-TempAge)
	dirs := []string{b.in(), b.in("run"), b.in("events"), b.in("inbox/bad"), b.in("sent/once")}
	days, _ := b.days(b.allSent(), time.Time{})
	for _, day := range days {
		dirs = append(dirs, day.dir)
	}
	for _, dir := range dirs {
		stale = append(stale, root.Stale(dir, before)...)
	}
	names, _ := root.Names(b.in("inbox/tmp"))
	for _, name := range names {
		id, rest, _ := strings.Cut(name, ".")
		info, err := root.Lstat(b.in("inbox/tmp", name))
		if err == nil && wire.IsID(id) && !strings.HasSuffix(rest, ".drop") && info.Mode().IsRegular() && info.ModTime().Before(before) {
			stale = append(stale, b.in("inbox/tmp", name))
		}
	}
	if remove {
		for _, file := range stale {
			root.Remove(file)
		}
	}
	return stale
}
