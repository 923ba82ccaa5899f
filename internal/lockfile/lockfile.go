// Package lockfile is the locks of a team: flock on files under .locks.
//
//	<team>/.locks/<name>    empty; only ever locked, never removed, never renamed
//
// A lock that was got is the file at the lock's path, between goroutines as between processes. A process that ends lets
// go of what it holds, and its children never hold anything. What a lock guards is looked at only after it was got.
package lockfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// HeldError says that somebody else holds a lock, and after a wait who, where the
// system tells (Linux does; else PID is 0 and Command empty).
type HeldError struct {
	Lock    string // its name, as given
	PID     int
	Command string // of the process, as /proc/PID/comm has it
}

func (e *HeldError) Error() string {
	by := ""
	if e.PID > 0 {
		by = fmt.Sprintf(" by %s (pid %d)", e.Command, e.PID)
	}
	return "lock " + e.Lock + " is held" + by
}

// Lock tries to get a lock at once, and then waits for it until the timeout is over, a
// *HeldError, or ctx ends. Where the lock file is absent, seen is called (nil: nothing
// is), and must return nil before the file is made; its error is returned as it is.
func (d Dir) Lock(ctx context.Context, name string, m Mode, timeout time.Duration, seen func() error) (*Lock, error) {
	expired := time.After(timeout)
	for ctx.Err() == nil {
		l, err := d.try(name, m, seen)
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		case <-expired:
			e := &HeldError{Lock: name}
			if timeout > 0 {
				e.PID, e.Command = d.holder(name)
			}
			return nil, e
		}
	}
	return nil, fmt.Errorf("lock %s: %w", name, ctx.Err())
}

// Held reports whether somebody holds the lock Exclusive. It takes the lock Shared for an instant, so a try of
// Exclusive at that instant may fail. With no lock file there is no holder; none is made.
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

// try takes the lock unless somebody holds it: nil. What it holds then is the file at the lock's path.
func (d Dir) try(name string, m Mode, seen func() error) (*Lock, error) {
	for range 3 { // it may be made or replaced between two steps
		l := &Lock{d, name, flock.New(d.team.Join(fileOf(name)), flock.SetFlag(os.O_RDONLY|syscall.O_NONBLOCK))}
		lock := l.file.TryLock
		if m == Shared {
			lock = l.file.TryRLock
		}
		isLocked, err := lock()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := d.makeFile(name, seen); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, fmt.Errorf("lock %s: %w", name, err)
		case !isLocked:
			return nil, nil
		case l.Current():
			return l, nil
		}
		l.Unlock()
	}
	// flock opens the file by the team's path.
	return nil, fmt.Errorf("lock %s: %s is gone or another directory than before", name, d.team.Path())
}

func fileOf(name string) string { return directory + "/" + name }

// makeFile makes the lock file, once what it guards was seen.
func (d Dir) makeFile(name string, seen func() error) error {
	if seen != nil {
		if err := seen(); err != nil {
			return err
		}
	}
	f, err := d.team.OpenFile(fileOf(name), os.O_RDONLY|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	return f.Close()
}

// Lock is a lock that is held, until Unlock.
type Lock struct {
	dir  Dir
	name string
	file *flock.Flock
}

// Unlock lets go, with LOCK_UN, so that a child just being started does not prolong it. Again is fine.
func (l *Lock) Unlock() error { return l.file.Unlock() }

// Current reports whether the lock is held and the file held is still the one at the
// lock's path. False means that somebody else may hold the lock too.
func (l *Lock) Current() bool {
	if !l.file.Locked() && !l.file.RLocked() {
		return false
	}
	held, err := l.file.Stat()
	now, gone := l.dir.team.Lstat(fileOf(l.name))
	return err == nil && gone == nil && os.SameFile(held, now)
}

// holder finds a process that holds a lock.
func (d Dir) holder(name string) (pid int, command string) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		if slices.Contains(d.heldBy(process, "FLOCK"), name) {
			pid, _ = strconv.Atoi(filepath.Base(process))
			comm, _ := os.ReadFile(process + "/comm")
			return pid, string(bytes.TrimSpace(comm))
		}
	}
	return 0, ""
}

// HeldBy are the locks that a process holds Exclusive, where the system tells.
func (d Dir) HeldBy(pid int) []string { return d.heldBy(fmt.Sprintf("/proc/%d", pid), "WRITE") }

// heldBy are the locks whose files a process has open and, as its fdinfo says, locked.
func (d Dir) heldBy(process, how string) (names []string) {
	open, _ := filepath.Glob(process + "/fd/*")
	for _, fd := range open {
		to, _ := os.Readlink(fd)
		name := filepath.Base(to)
		if !strings.HasSuffix(to, "/"+fileOf(name)) {
			continue
		}
		file, err := d.team.Lstat(fileOf(name))
		info, gone := os.Stat(fd)
		about, _ := os.ReadFile(process + "/fdinfo/" + filepath.Base(fd))
		if err == nil && gone == nil && os.SameFile(info, file) && bytes.Contains(about, []byte(how)) {
			names = append(names, name)
		}
	}
	return names
}
