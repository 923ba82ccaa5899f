// Package keep archives what is done, retires mailboxes and brings them back, gives a backup all messages, and examines
// mailboxes for doctor.
package keep

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
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// GCOptions say which messages GC archives.
type GCOptions struct {
	Before   time.Time // only days that ended before it
	KeepLast int       // keep at least this many of the newest done messages
	DryRun   bool      // only count
	Progress func()    // called for each message that is moved or counted; nil: nobody asks
}

// Moved counts the messages and events that gc has moved.
type Moved struct {
	Messages int   `json:"messages"`
	Events   int   `json:"events,omitempty"`
	Bytes    int64 `json:"bytes"`
	Skipped  int   `json:"skipped"`
}

// Add adds what else was moved.
func (m *Moved) Add(o Moved) {
	m.Messages += o.Messages
	m.Events += o.Events
	m.Bytes += o.Bytes
	m.Skipped += o.Skipped
}

// GC moves whole days of done messages to the archive, but for those with some of the newest KeepLast. It never touches
// unread or owed messages. It deletes only leftovers of killed writers. It looks how large the messages are before it takes
// the lock, which others wait for.
func GC(ctx context.Context, b *maildir.Box, opt GCOptions) (total Moved, err error) {
	if err := b.CheckPresent(); err != nil {
		return total, err
	}
	bytes := map[string]int64{} // by day
	measure := func(day maildir.Folder, ids []wire.ID) error {
		bytes[day.Dir] = sizeOf(b, day, ids, opt.Progress)
		return nil
	}
	if total, err = eachOldDay(ctx, b, opt, measure, bytes); opt.DryRun {
		return total, err
	}
	err = b.Locked(ctx, "reader", func() (err error) {
		if total, err = eachOldDay(ctx, b, opt, func(day maildir.Folder, ids []wire.ID) error { return archiveDay(b, day, ids) }, bytes); err == nil {
			removeStale(b, stale(b))
			b.RemoveEmptyHeld()
			b.Store().Dir().RemoveAll(b.In(maildir.HeadersDir)) // the next look keeps those of the days that are left
		}
		return err
	})
	return total, err
}

// eachOldDay calls f for the days that GC moves, and counts what is in those for which it returns no error.
func eachOldDay(ctx context.Context, b *maildir.Box, opt GCOptions, f func(maildir.Folder, []wire.ID) error, bytes map[string]int64) (total Moved, err error) {
	days, err := b.Days(b.AllDone(), time.Time{})
	limit := opt.Before.UTC().Format(time.DateOnly)
	for _, day := range slices.Backward(days) {
		ids, e := b.IDsIn(day)
		// From the newest day backwards, days are kept until there are KeepLast messages.
		isKept := total.Skipped < opt.KeepLast || path.Base(day.Dir) >= limit
		if e != nil || isKept {
			total.Skipped += len(ids)
		} else if e = ctx.Err(); e == nil {
			if e = f(day, ids); e == nil {
				total.Add(Moved{Messages: len(ids), Bytes: bytes[day.Dir]})
			} else if errors.Is(e, maildir.ErrNotFound) { // somebody else has just moved it
				e = nil
			}
		}
		err = errors.Join(err, e)
	}
	return total, err
}

func sizeOf(b *maildir.Box, day maildir.Folder, ids []wire.ID, progress func()) (bytes int64) {
	for _, id := range ids {
		if progress != nil {
			progress()
		}
		if info, err := b.Store().Dir().Lstat(day.File(id)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// archiveDay moves a day by one rename, or message by message if the day is in the archive already, or in the image of
// a container, whose directories cannot be renamed. It returns ErrNotFound if the day is gone.
func archiveDay(b *maildir.Box, from maildir.Folder, ids []wire.ID) error {
	root, to := b.Store().Dir(), b.Archive().Day(path.Base(from.Dir))
	if err := b.Mkdir(b.Archive().Dir); err != nil {
		return err
	}
	err := root.Move(from.Dir, to.Dir)
	if durable.IsAbsent(err) {
		return maildir.ErrNotFound
	}
	if !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.EXDEV) {
		return err
	}
	err = nil
	for _, id := range ids {
		if e := b.Move(id, from, to); !errors.Is(e, maildir.ErrNotFound) {
			err = errors.Join(err, e)
		}
	}
	root.Remove(from.Dir) // which fails if other files are in it
	return err
}

// TempAge is the age from which a temp file counts as left by a killed writer.
const TempAge = 36 * time.Hour

// stale lists the temp files that killed writers left. Dropped files that are being ingested are mail, and never stale.
func stale(b *maildir.Box) (stale []string) {
	root, before := b.Store().Dir(), time.Now().Add(-TempAge)
	dirs := []string{b.In(), b.In("run"), b.In("events"), b.In("inbox/bad"), b.In("sent/once")}
	days, _ := b.Days(b.AllSent(), time.Time{})
	for _, day := range days {
		dirs = append(dirs, day.Dir)
	}
	for _, dir := range dirs {
		stale = append(stale, root.Stale(dir, before)...)
	}
	names, _ := root.Names(b.In("inbox/tmp"))
	for _, name := range names {
		id, rest, _ := strings.Cut(name, ".")
		if !wire.IsID(id) || strings.HasSuffix(rest, ".drop") {
			continue // not a delivery's
		}
		info, err := root.Lstat(b.In("inbox/tmp", name))
		if err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			stale = append(stale, b.In("inbox/tmp", name))
		}
	}
	return stale
}

func removeStale(b *maildir.Box, stale []string) {
	for _, file := range stale {
		b.Store().Dir().Remove(file)
	}
}
