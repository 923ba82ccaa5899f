// Package lockfile is the locks of a team: flock on files under .locks.
//
//	<team>/.locks/<name>    empty; only ever locked, never removed, never renamed
//
// A lock that was got is the file at the lock's path: between goroutines as between
// processes nobody else holds it Exclusive, and when this one is Exclusive, nobody
// holds it Shared. A process that ends in any way lets go of what it holds, and its
// children never hold anything. Should somebody remove a lock file by hand while it is
// held, the next one makes a new file and holds that; Lock.Current tells the first.
//
// What a lock guards is looked at only after it was got.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/agentteammail/atm/internal/durable"
)

// Mode says who else may hold the lock.
type Mode int

const (
	Shared    Mode = iota // others may hold it Shared
	Exclusive             // nobody else holds it
)

const directory = ".locks"

// poll is how often a held lock is tried again. With eight processes at one lock
// 1 to 2 ms were as fair as a blocking flock; at 10 ms some never got it.
const poll = 2 * time.Millisecond

// Dir is the locks of a team. It may be used by several goroutines at once.
type Dir struct{ team *durable.Root }

// In is the locks of a team's directory.
func In(team *durable.Root) Dir { return Dir{team} }

// HeldError says that somebody else holds a lock, and who, where the system tells
// (Linux does; else PID is 0 and Command empty).
type HeldError struct {
	Lock    string // its name, as given
	PID     int
	Command string // of the process, as /proc/PID/comm has it
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("lock %s is held", e.Lock)
	}
	return fmt.Sprintf("lock %s is held by %s (pid %d)", e.Lock, e.Command, e.PID)
}

// Lock waits for the lock name, for ever when timeout is 0 or less; it tries at least
// once. When the timeout is over the error is a *HeldError; when ctx ends, it wraps
// ctx's. Where the lock file is absent, seen is called (nil: nothing is), and must
// return nil before the file is made; its error is returned as it is.
func (d Dir) Lock(ctx context.Context, name string, m Mode, timeout time.Duration, seen func() error) (*Lock, error) {
	var expired <-chan time.Time
	if timeout > 0 {
		expired = time.After(timeout)
	}
	for ctx.Err() == nil {
		l, err := d.acquire(name, m, seen)
		if err != errHeld {
			return l, err
		}
		select {
		case <-ctx.Done():
		case <-expired:
			return nil, d.heldError(name)
		case <-time.After(poll):
		}
	}
	return nil, fmt.Errorf("lock %s: %w", name, ctx.Err())
}

// Try is Lock without waiting: a *HeldError at once when somebody holds it.
func (d Dir) Try(name string, m Mode, seen func() error) (*Lock, error) {
	l, err := d.acquire(name, m, seen)
	if err == errHeld {
		return nil, d.heldError(name)
	}
	return l, err
}

// Held reports whether somebody holds the lock Exclusive. It takes the lock Shared
// for an instant, so a Try of Exclusive at that instant may fail. With no lock file
// there is no holder; none is made.
func (d Dir) Held(name string) (bool, error) {
	l, err := d.acquire(name, Shared, func() error { return errAbsent })
	switch err {
	case nil:
		return false, l.Unlock()
	case errAbsent:
		return false, nil
	case errHeld:
		return true, nil
	}
	return false, err
}

var (
	errHeld   = errors.New("held")
	errAbsent = errors.New("absent")
)

// acquire takes the lock if nobody holds it, errHeld, and checks that it is the file
// at the lock's path.
func (d Dir) acquire(name string, m Mode, seen func() error) (*Lock, error) {
	if !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\\x00") || name == "." {
		return nil, fmt.Errorf("lock %q: %w", name, fs.ErrInvalid)
	}
	for range 20 {
		if err := d.makeFile(name, seen); err != nil {
			return nil, err
		}
		// Without O_CREATE: only makeFile makes files.
		l := &Lock{d, name, flock.New(d.team.Join(fileOf(name)), flock.SetFlag(os.O_RDONLY|syscall.O_NONBLOCK))}
		try := l.file.TryLock
		if m == Shared {
			try = l.file.TryRLock
		}
		ok, err := try()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed a moment ago
		case err != nil:
			return nil, fmt.Errorf("lock %s: %w", name, err)
		case !ok:
			return nil, errHeld
		case l.Current():
			return l, nil
		}
		l.Unlock()
	}
	return nil, fmt.Errorf("lock %s: its file is replaced again and again", name)
}

func fileOf(name string) string { return directory + "/" + name }

// makeFile makes the lock file unless it is there. It fails when another directory
// is at the team's path, by which flock opens the file.
func (d Dir) makeFile(name string, seen func() error) error {
	team, err := d.team.Lstat(".")
	now, e := os.Stat(d.team.Path())
	if err != nil || e != nil || !os.SameFile(team, now) {
		return fmt.Errorf("lock %s: %s is gone or another directory than before", name, d.team.Path())
	}
	if err := d.team.IsDir(directory); err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	locks, err := d.team.Lstat(directory)
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	info, err := d.team.Lstat(fileOf(name))
	isShared := err == nil && locks.Mode()&^info.Mode()&0o060 == 0
	if err == nil && info.Mode().IsRegular() && isShared {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) && seen != nil {
		if err := seen(); err != nil {
			return err
		}
	}
	// This also shares the file of a process that was killed before it did.
	f, err := d.team.OpenFile(fileOf(name), os.O_RDONLY|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	return f.Close()
}

// Lock is a lock that is held, until Unlock; one that is forgotten is let go at some
// time.
type Lock struct {
	dir  Dir
	name string
	file *flock.Flock
}

// Unlock lets go, with LOCK_UN, so that a child just being started does not prolong
// it. Again is fine.
func (l *Lock) Unlock() error { return l.file.Unlock() }

// Current reports whether the lock is held and the file held is still the one at the
// lock's path. False means that somebody else may hold the lock too.
func (l *Lock) Current() bool {
	held, err := l.file.Stat()
	now, e := l.dir.team.Lstat(fileOf(l.name))
	return err == nil && e == nil && os.SameFile(held, now) && (l.file.Locked() || l.file.RLocked())
}

func (d Dir) heldError(name string) error {
	e := &HeldError{Lock: name}
	if info, err := d.team.Lstat(fileOf(name)); err == nil {
		e.PID, e.Command = holder(info)
	}
	return e
}
