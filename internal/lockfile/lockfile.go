// Package lockfile is the locks of a team: flock on files under .locks.
//
//	<team>/.locks/<name>    empty; only ever locked, never removed, never renamed
//
// When Lock or Try has returned, the file held is the one that lies at the lock's
// path: between goroutines as between processes nobody else holds it Exclusive, and
// when this one is Exclusive, nobody holds it Shared. A process that ends in any way
// lets go of what it holds, and its children never hold anything.
//
// A lock ties its holder to nothing else: after it is got, what it guards is looked
// at anew. Somebody may remove a lock file by hand while it is held; whoever comes
// then makes a new one and holds that. Lock.Current tells the first holder.
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
	switch {
	case e.Command != "":
		return fmt.Sprintf("lock %s is held by %s (pid %d)", e.Lock, e.Command, e.PID)
	case e.PID != 0:
		return fmt.Sprintf("lock %s is held by pid %d", e.Lock, e.PID)
	}
	return fmt.Sprintf("lock %s is held", e.Lock)
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
			return nil, d.held(name)
		case <-time.After(poll):
		}
	}
	return nil, fmt.Errorf("lock %s: %w", name, ctx.Err())
}

// Try is Lock without waiting: a *HeldError at once when somebody holds it.
func (d Dir) Try(name string, m Mode, seen func() error) (*Lock, error) {
	l, err := d.acquire(name, m, seen)
	if err == errHeld {
		return nil, d.held(name)
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

// acquire takes the lock if nobody holds it, errHeld, and sees that it holds the file
// that lies at the lock's path.
func (d Dir) acquire(name string, m Mode, seen func() error) (*Lock, error) {
	if !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\\x00") || name == "." {
		return nil, fmt.Errorf("lock %q: %w", name, fs.ErrInvalid)
	}
	path := d.team.Join(directory + "/" + name)
	for range 20 {
		if err := d.ready(name, seen); err != nil {
			return nil, err
		}
		// Opened without O_CREATE: only ready makes files.
		l := &Lock{dir: d, name: name, file: flock.New(path, flock.SetFlag(os.O_RDONLY|syscall.O_NONBLOCK))}
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
	return nil, fmt.Errorf("lock %s: %s is replaced again and again", name, path)
}

// ready sees that the team is still at its path, which flock opens the file by, and
// that a regular file lies at the lock's. It makes one where there is none and seen
// has nothing against it.
func (d Dir) ready(name string, seen func() error) error {
	team, err := d.team.Lstat(".")
	now, e := os.Stat(d.team.Path())
	if err != nil || e != nil || !os.SameFile(team, now) {
		return fmt.Errorf("lock %s: %s is gone or another directory than before", name, d.team.Path())
	}
	locks, err := d.team.Lstat(directory)
	if err == nil && !locks.IsDir() {
		err = fmt.Errorf("%s %w", d.team.Join(directory), durable.ErrNotDirectory)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	path := directory + "/" + name
	info, err := d.team.Lstat(path)
	if err == nil && info.Mode().IsRegular() {
		if locks.Mode()&^info.Mode()&0o060 != 0 {
			// Its maker may have been killed before it shared it with the group.
			if f, err := d.team.OpenFile(path, os.O_RDONLY|os.O_CREATE); err == nil {
				f.Close()
			}
		}
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) && seen != nil {
		if err := seen(); err != nil {
			return err
		}
	}
	f, err := d.team.OpenFile(path, os.O_RDONLY|os.O_CREATE)
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
	now, e := l.dir.team.Lstat(directory + "/" + l.name)
	return err == nil && e == nil && os.SameFile(held, now) && (l.file.Locked() || l.file.RLocked())
}

func (d Dir) held(name string) error {
	e := &HeldError{Lock: name}
	if info, err := d.team.Lstat(directory + "/" + name); err == nil {
		e.PID, e.Command = holder(info)
	}
	return e
}
