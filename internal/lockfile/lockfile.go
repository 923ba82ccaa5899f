// Package lockfile takes the locks of a team: flock on files under .locks.
//
//	<team>/.locks/<name>    empty; never removed, never renamed
//
// A lock excludes other goroutines as well as other processes. The kernel releases it when its process ends; children
// do not inherit it. What a lock guards must be looked at after the lock is taken.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/agentteammail/atm/internal/durable"
)

// Mode says whether others may hold the lock too.
type Mode int

const (
	Shared    Mode = iota // others may hold it Shared
	Exclusive             // nobody else may hold it
)

const directory = ".locks"

// poll is the pause between two tries. With eight processes at one lock, 1 to 2 ms were as fair as a blocking flock; at
// 10 ms some starved.
const poll = 2 * time.Millisecond

// DefaultTimeout is after how long whoever has said nothing else gives up a lock that is held.
const DefaultTimeout = 5 * time.Second

// Dir is the locks of a team. It is safe for concurrent use.
type Dir struct{ team *durable.Root }

// In returns the locks of a team's directory.
func In(team *durable.Root) Dir { return Dir{team} }

// HeldError reports that somebody else holds a lock.
type HeldError struct{ Lock string }

func (e *HeldError) Error() string { return "lock " + e.Lock + " is held" }

// Lock takes a lock. If it is held, Lock waits until ctx ends or the timeout is over, which is a *HeldError; with a
// timeout of 0 it tries once. A missing lock file is made if mayMake is nil or returns nil; Lock returns its error.
func (d Dir) Lock(ctx context.Context, name string, m Mode, timeout time.Duration, mayMake func() error) (*Lock, error) {
	expired := time.After(timeout)
	for ctx.Err() == nil {
		l, err := d.try(name, m, mayMake)
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		case <-expired:
			return nil, &HeldError{name}
		}
	}
	return nil, fmt.Errorf("lock %s: %w", name, ctx.Err())
}

// Held reports whether somebody holds the lock Exclusive. It takes the lock Shared for an instant, so another process
// that tries Exclusive at that instant may fail. It makes no lock file.
func (d Dir) Held(name string) (bool, error) {
	l, err := d.try(name, Shared, func() error { return fs.ErrNotExist })
	if err == fs.ErrNotExist {
		return false, nil
	}
	if l != nil {
		return false, l.Unlock()
	}
	return err == nil, err
}

// try takes the lock; it returns nil if somebody holds it, or has removed its file meanwhile.
func (d Dir) try(name string, m Mode, mayMake func() error) (*Lock, error) {
	f, err := d.team.Open(fileOf(name))
	if errors.Is(err, fs.ErrNotExist) && mayMake != nil {
		if err := mayMake(); err != nil {
			return nil, err
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		// What root makes must belong to the team's owner, even if this process is killed before it gives it away.
		err = d.team.Publish(fileOf(name), strings.NewReader(""), false)
		if err == nil || errors.Is(err, fs.ErrExist) { // another process was quicker
			f, err = d.team.Open(fileOf(name))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	isLocked, err := tryFlock(f, m)
	if err != nil || !isLocked {
		f.Close()
		if err != nil {
			err = fmt.Errorf("lock %s: %w", name, err)
		}
		return nil, err
	}
	l := &Lock{dir: d, name: name, file: f}
	if !l.Current() {
		return nil, l.Unlock()
	}
	l.noteHeld()
	return l, nil
}

func fileOf(name string) string { return directory + "/" + name }

// HoldFile locks a file anywhere, which this process writes, until release or the process ends. If it is not locked,
// then whoever wrote it was killed, unless that was a moment ago.
func HoldFile(path string) (release func() error, isHeld bool) {
	f := flock.New(path, flock.SetFlag(os.O_RDONLY))
	isHeld, _ = f.TryLock()
	return f.Unlock, isHeld
}

// Lock is a lock that is held until Unlock.
type Lock struct {
	dir  Dir
	name string

	mu   sync.Mutex
	file *os.File // nil after Unlock
}

// Unlock releases the lock, with LOCK_UN: a child that is just being started cannot keep it. It may be called again.
func (l *Lock) Unlock() error {
	l.noteFree()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := errors.Join(unflock(l.file), l.file.Close())
	l.file = nil
	return err
}

// Current reports whether the lock is held and its file is still there. If not, somebody else may hold the lock too.
func (l *Lock) Current() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return false
	}
	held, err := l.file.Stat()
	now, nowErr := l.dir.team.Lstat(fileOf(l.name))
	return err == nil && nowErr == nil && os.SameFile(held, now)
}
