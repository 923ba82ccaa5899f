package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
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

// GC moves days of finished messages to the archive, whole: those that ended before a moment and hold
// none of the newest KeepLast. Nothing that is unread or owed is touched, nothing is deleted but the
// leftovers of killed writers. A dry run counts the same.
func (b *Box) GC(ctx context.Context, opt GCOptions) (total Moved, err error) {
	err = b.locked(ctx, "reader", func() error {
		days, err := b.days(b.in("inbox/done"))
		limit := opt.Before.UTC().Format(time.DateOnly)
		for _, day := range slices.Backward(days) {
			ids, e := b.list(b.in("inbox/done", day))
			if err = errors.Join(err, e, ctx.Err()); err != nil {
				break
			}
			// The days from the newest on are kept until there are enough.
			if total.Skipped < opt.KeepLast || day >= limit {
				total.Skipped += len(ids)
			} else {
				err = b.archiveDay(day, ids, opt.DryRun, &total)
			}
		}
		if err == nil && !opt.DryRun {
			b.stale(true)
		}
		return err
	})
	return total, err
}

// archiveDay moves a day: by one rename, or message by message where the day is in the archive already.
func (b *Box) archiveDay(day string, ids []wire.ID, dry bool, total *Moved) error {
	root := b.store.root
	from, to := place{Done, b.in("inbox/done", day)}, place{Done, b.archived("done", day)}
	var m Moved
	for _, id := range ids {
		if info, err := root.Lstat(from.file(id)); err == nil {
			m.Add(Moved{Messages: 1, Bytes: info.Size()})
		}
	}
	if !dry {
		if err := b.mkdir(b.archived("done")); err != nil {
			return err
		}
		err := root.Move(from.dir, to.dir)
		if absent(err) {
			return nil // somebody moved it away
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
			for _, id := range ids {
				if e := b.move(id, from, to); e != errGone {
					err = errors.Join(err, e)
				}
			}
			root.Remove(from.dir) // stays if anything foreign is in it
		}
		if err != nil {
			return err
		}
	}
	total.Add(m)
	return nil
}

// tempAge is how long an unfinished file stays.
const tempAge = 36 * time.Hour

// stale lists what was being written and has not been touched for 36 hours: the leftovers of killed
// writers. With remove they go. Dropped files that are being taken in are mail, and never stale.
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
		id, rest, _ := strings.Cut(name, ".")
		info, err := root.Lstat(b.in("inbox/tmp", name))
		if err == nil && wire.IsID(id) && !strings.HasSuffix(rest, ".drop") && info.Mode().IsRegular() && info.ModTime().Before(before) {
			stale = append(stale, b.in("inbox/tmp", name))
		}
	}
	for _, file := range stale {
		if remove {
			root.Remove(file)
		}
	}
	return stale
}

const (
	retiredDir   = ".archive/retired"
	retiredStamp = "20060102T150405.000000000Z"
)

// Retire moves an agent's whole mailbox, with its unread mail, to the archive, and returns where to,
// below the team's directory. ErrRunning while it is run.
func (s *Store) Retire(ctx context.Context, agent wire.Name) (string, error) {
	b := s.Box(agent)
	// None may start while the mailbox goes. Shared, as who probes has it: to them the agent does not
	// run.
	runner, err := b.lockRunner(ctx, lockfile.Shared)
	if err != nil {
		return "", err
	}
	defer runner.Unlock()
	unlock, err := b.lockAll(ctx, b.Present)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := cmp.Or(b.Present(), s.root.MkdirAll(retiredDir)); err != nil {
		return "", err
	}
	as := path.Join(retiredDir, string(agent)+"."+time.Now().UTC().Format(retiredStamp))
	return as, s.moveMailbox(b.in(), as)
}

func (s *Store) moveMailbox(from, to string) error {
	if err := s.root.Move(from, to); err != nil {
		return err
	}
	return errors.Join(s.root.Sync(path.Dir(to)), s.root.Sync(path.Dir(from)))
}

// lockAll takes the locks under which a whole mailbox may be moved.
func (b *Box) lockAll(ctx context.Context, seen func() error) (unlock func(), err error) {
	unlock = func() {}
	for _, name := range []string{"team", b.in() + ".inbox", b.in() + ".reader", b.in() + ".events"} {
		before := unlock
		one, err := b.store.lock(ctx, name, lockfile.Exclusive, seen)
		if err != nil {
			before()
			return nil, err
		}
		unlock = func() { one(); before() }
	}
	return unlock, nil
}

// Retired lists the retired mailboxes' directory names, the oldest of each agent first.
func (s *Store) Retired() ([]string, error) {
	names, err := s.root.Names(retiredDir)
	return slices.DeleteFunc(names, func(n string) bool {
		name, stamp, _ := strings.Cut(n, ".")
		_, err := time.Parse(retiredStamp, stamp)
		return err != nil || !wire.IsName(name)
	}), err
}

// LastRetired is the directory of the agent's mailbox that was retired last, as Retired lists it;
// ErrNoAgent when there is none.
func (s *Store) LastRetired(agent wire.Name) (string, error) {
	all, err := s.Retired()
	for _, n := range slices.Backward(all) {
		if strings.HasPrefix(n, string(agent)+".") {
			return n, err
		}
	}
	return "", errors.Join(err, fmt.Errorf("no retired mailbox of %s: %w", agent, ErrNoAgent))
}

// Restore brings the mailbox of an agent back that was retired last. ErrExists while an agent of that
// name lives, ErrNoAgent when none was retired.
func (s *Store) Restore(ctx context.Context, agent wire.Name) error {
	b := s.Box(agent)
	unlock, err := b.lockAll(ctx, func() error {
		if _, err := s.LastRetired(agent); err != nil && !b.Exists() {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer unlock()
	if there, err := s.root.Exists(b.in()); there {
		return fmt.Errorf("%s: %w", b.Address(), ErrExists)
	} else if err != nil {
		return err
	}
	last, err := s.LastRetired(agent)
	if err != nil {
		return err
	}
	return s.moveMailbox(path.Join(retiredDir, last), b.in())
}

// Entry names a message file of a mailbox, for a backup.
type Entry struct {
	ID    wire.ID
	State State
	Path  string // below the agent's directory, with slashes: inbox/done/2026-01-02/<id>.json
}

// entry is the entry of a message in a place; what is archived is restored as done.
func (b *Box) entry(p place, id wire.ID) Entry {
	below, ok := strings.CutPrefix(p.file(id), b.in()+"/")
	if !ok {
		below = "inbox" + strings.TrimPrefix(p.file(id), b.archived())
	}
	return Entry{id, p.state, below}
}

// List names every message of the mailbox, in the order in which they move, under the reader's lock, so
// that none is missed or named twice.
func (b *Box) List(ctx context.Context) (out []Entry, err error) {
	list := func() error {
		out = nil
		return b.listPlaces(inOrder[:4], func(p place, ids []wire.ID) bool {
			for _, id := range ids {
				out = append(out, b.entry(p, id))
			}
			return true
		})
	}
	if err = b.locked(ctx, "reader", list); isUnwritable(err) {
		err = list()
	}
	return out, err
}

// Copy reads a message file that List named. One that has moved meanwhile is looked for further on, and
// its entry corrected.
func (b *Box) Copy(e *Entry) (data []byte, err error) {
	err = b.find(e.ID, func(p place) (err error) {
		if data, err = b.store.root.ReadFile(p.file(e.ID), wire.MaxFile); absent(err) {
			return errGone
		}
		if err == nil {
			*e = b.entry(p, e.ID)
		}
		return err
	})
	return data, err
}

// Put puts a message back where a backup found it, durably, unless one of its id is anywhere in the
// mailbox. It reports whether it did.
func (b *Box) Put(ctx context.Context, state State, data []byte) (put bool, err error) {
	m, err := wire.Decode(data)
	if err != nil {
		return false, err
	}
	at, ok := map[State]place{Unread: b.unread(), Owed: b.owed(), Done: b.done(m.ID), Withdrawn: b.withdrawn()}[state]
	if !ok {
		return false, fmt.Errorf("a message cannot be put back as %q", state)
	}
	err = b.locked(ctx, "inbox", func() error {
		if _, there, err := b.locate(m.ID); there || err != nil {
			return err
		}
		for _, dir := range []string{b.in("inbox/tmp"), at.dir} {
			if err := b.mkdir(dir); err != nil {
				return err
			}
		}
		temp := b.in("inbox/tmp", string(m.ID)+"."+string(wire.NewID()))
		if err := b.store.publish(temp, at.file(m.ID), data); err != nil {
			return err
		}
		put = true
		return b.store.root.Sync(at.dir)
	})
	return put, err
}
