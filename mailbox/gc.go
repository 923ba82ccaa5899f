package mailbox

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// tmpAge is how long an unfinished file stays in tmp.
const tmpAge = 36 * time.Hour

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

// GC moves days of finished messages to the archive, whole: those that ended
// before a moment and hold none of the newest KeepLast. Nothing that is unread
// owed or set aside is touched, nothing is deleted. A dry run counts the same.
func (b *Box) GC(ctx context.Context, opt GCOptions) (Moved, error) {
	var total Moved
	unlock, err := b.lock(ctx, "reader", lockfile.Exclusive)
	if err != nil {
		return total, err
	}
	defer unlock()
	r, err := b.enter()
	if err != nil {
		return total, err
	}
	defer r.close()
	days, err := r.days("inbox/done")
	if err != nil {
		return total, err
	}
	kept := 0
	limit := opt.Before.UTC().Format(time.DateOnly)
	for _, day := range slices.Backward(days) {
		d, err := r.dir("inbox/done/"+day, false)
		if err != nil || d == nil {
			return total, err
		}
		count := 0
		if err := ids(d, func(wire.ID) { count++ }); err != nil {
			return total, err
		}
		if kept < opt.KeepLast || day >= limit {
			kept += count
			total.Skipped += count
			continue
		}
		m, err := r.archiveDay(d, day, opt.DryRun)
		total.Add(m)
		if err != nil {
			return total, err
		}
		if ctx.Err() != nil {
			return total, ctx.Err()
		}
	}
	if opt.DryRun {
		return total, nil
	}
	r.sweep()
	_, _, err = r.tidy(b.store.now())
	b.tell(ctx, r.said)
	return total, err
}

// archiveDay moves a day: by one rename, or message by message where the day
// is in the archive already.
func (r *room) archiveDay(d *atomicfile.Dir, day string, dry bool) (Moved, error) {
	var m Moved
	var names []string
	err := ids(d, func(id wire.ID) {
		name := string(id) + ".json"
		if info, err := d.Lstat(name); err == nil {
			m.Messages++
			m.Bytes += info.Size()
			names = append(names, name)
		}
	})
	if err != nil || dry {
		return m, err
	}
	to, err := r.dir("archive/done", true)
	if err != nil {
		return Moved{}, err
	}
	done, err := r.dir("inbox/done", false)
	if err != nil || done == nil {
		return Moved{}, err
	}
	err = atomicfile.Move(done, day, to, day)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return m, err
	}
	into, err := r.dir("archive/done/"+day, true)
	if err != nil {
		return Moved{}, err
	}
	for _, name := range names {
		err := atomicfile.Move(d, name, into, name)
		if errors.Is(err, fs.ErrExist) {
			err = r.toBad(d, name, "a duplicate of the message in the archive")
		}
		if err != nil {
			return m, err
		}
	}
	done.Remove(day) // stays if anything foreign is in it
	return m, nil
}

// sweep removes from tmp what was being written and has not been touched for
// 36 hours. Claims of dropped files are never swept: they are mail.
func (r *room) sweep() (removed int) {
	tmp, err := r.dir("inbox/tmp", false)
	if err != nil || tmp == nil {
		return 0
	}
	for _, name := range r.stale(tmp) {
		if tmp.Remove(name) == nil {
			removed++
		}
	}
	// What was being written when who took a message, or noted a time, was killed.
	for _, dir := range []string{leasesDir, asideDir, datedDir} {
		d, err := r.dir(dir, false)
		if err != nil || d == nil {
			continue
		}
		d.Names(func(names []string) bool {
			for _, n := range names {
				info, err := d.Lstat(n)
				if err == nil && n[0] == '.' && (dir == datedDir || strings.Contains(n, leaseEnd+".")) && info.Mode().IsRegular() && time.Since(info.ModTime()) > tmpAge && d.Remove(n) == nil {
					removed++
				}
			}
			return true
		})
	}
	return removed
}

func (r *room) stale(tmp *atomicfile.Dir) (out []string) {
	tmp.Names(func(names []string) bool {
		for _, n := range names {
			if strings.HasSuffix(n, ".drop") || len(n) < 36 || !wire.IsID(n[:36]) {
				continue
			}
			info, err := tmp.Lstat(n)
			if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > tmpAge {
				out = append(out, n)
			}
		}
		return true
	})
	return out
}
