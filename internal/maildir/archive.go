package maildir

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// GCOptions say which messages GC archives.
type GCOptions struct {
	Before   time.Time // only days that ended before it
	KeepLast int       // keep at least this many of the newest done messages
	DryRun   bool      // only count
	Progress func()    // called for each message that is moved or counted; nil: nobody asks
}

// Moved counts the messages and events that gc, backup and restore have moved.
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

// GC moves whole days of done messages to the archive, but for those with some of the newest KeepLast. It never touches
// unread or owed messages. It deletes only leftovers of killed writers. It looks how large the messages are before it takes
// the lock, which others wait for.
func (b *Box) GC(ctx context.Context, opt GCOptions) (total Moved, err error) {
	if err := b.CheckPresent(); err != nil {
		return total, err
	}
	bytes := map[string]int64{} // by day
	measure := func(day folder, ids []wire.ID) error {
		bytes[day.dir] = b.sizeOf(day, ids, opt.Progress)
		return nil
	}
	if total, err = b.eachOldDay(ctx, opt, measure, bytes); opt.DryRun {
		return total, err
	}
	err = b.locked(ctx, "reader", func() (err error) {
		if total, err = b.eachOldDay(ctx, opt, b.archiveDay, bytes); err == nil {
			b.removeStale(b.stale())
		}
		return err
	})
	return total, err
}

// eachOldDay calls f for the days that GC moves, and counts what is in those for which it returns no error.
func (b *Box) eachOldDay(ctx context.Context, opt GCOptions, f func(folder, []wire.ID) error, bytes map[string]int64) (total Moved, err error) {
	days, err := b.days(b.allDone(), time.Time{})
	limit := opt.Before.UTC().Format(time.DateOnly)
	for _, day := range slices.Backward(days) {
		ids, e := b.list(day)
		// From the newest day backwards, days are kept until there are KeepLast messages.
		isKept := total.Skipped < opt.KeepLast || path.Base(day.dir) >= limit
		if e != nil || isKept {
			total.Skipped += len(ids)
		} else if e = ctx.Err(); e == nil {
			if e = f(day, ids); e == nil {
				total.Add(Moved{Messages: len(ids), Bytes: bytes[day.dir]})
			} else if errors.Is(e, ErrNotFound) { // somebody else has just moved it
				e = nil
			}
		}
		err = errors.Join(err, e)
	}
	return total, err
}

func (b *Box) sizeOf(day folder, ids []wire.ID, progress func()) (bytes int64) {
	for _, id := range ids {
		if progress != nil {
			progress()
		}
		if info, err := b.store.root.Lstat(day.file(id)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// archiveDay moves a day by one rename, or message by message if the day is in the archive already, or in the image of
// a container, whose directories cannot be renamed. It returns ErrNotFound if the day is gone.
func (b *Box) archiveDay(from folder, ids []wire.ID) error {
	root, to := b.store.root, b.archive().day(path.Base(from.dir))
	if err := b.mkdir(b.archive().dir); err != nil {
		return err
	}
	err := root.Move(from.dir, to.dir)
	if durable.IsAbsent(err) {
		return ErrNotFound
	}
	if !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.EXDEV) {
		return err
	}
	err = nil
	for _, id := range ids {
		if e := b.move(id, from, to); !errors.Is(e, ErrNotFound) {
			err = errors.Join(err, e)
		}
	}
	root.Remove(from.dir) // which fails if other files are in it
	return err
}

// TempAge is the age from which a temp file counts as left by a killed writer.
const TempAge = 36 * time.Hour

// stale lists the temp files that killed writers left. Dropped files that are being ingested are mail, and never stale.
func (b *Box) stale() (stale []string) {
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
		if !wire.IsID(id) || strings.HasSuffix(rest, ".drop") {
			continue // not a delivery's
		}
		info, err := root.Lstat(b.in("inbox/tmp", name))
		if err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			stale = append(stale, b.in("inbox/tmp", name))
		}
	}
	return stale
}

func (b *Box) removeStale(stale []string) {
	for _, file := range stale {
		b.store.root.Remove(file)
	}
}
