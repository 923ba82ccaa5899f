// Package lockfile is the locks of a team: flock on files under .locks.
//
//	<team>/.locks/<name>    empty; only ever locked, never removed, never renamed
//
// What may be relied on:
//
//   - When Lock or Try returned, the file held is the one that was at the
//     lock's path at that moment, and as long as nobody removes it, no other
//     Exclusive lock on it exists anywhere on this kernel, and, when this one
//     is Exclusive, no Shared one either. This holds between goroutines as
//     between processes.
//   - A process that ends in any way lets go of what it holds. Its children
//     never hold anything: the file is closed when they are started.
//   - Waiting is done in the kernel, not by polling, and ends when it should.
//     Should the lock come to a wait that was given up, it is let go at once.
//   - A lock file is made only after the caller saw that what it guards is
//     there. Probing makes nothing.
//
// What may not: lock files are permanent for atm, but somebody else may remove
// one while it is held. Who comes then makes a new file and holds that, beside
// the first holder; the first can find out with Lock.Current. Who was waiting
// for the removed file goes for the new one, so that among all who come after
// the removal there is again one holder. And a lock ties its holder to nothing
// else: after it is got, what it guards must be opened by its path and looked
// at anew.
//
// flock is not fair. Among eight contenders the longest wait measured was an
// eighth of a second; polling every 10 ms starves some for good.
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
)

// Mode says who else may hold the lock.
type Mode int

const (
	Shared    Mode = iota // others may hold it Shared
	Exclusive             // nobody else holds it
	Often                 // Exclusive, for who takes it thousands of times a second: see Trust
)

const locksDir = ".locks"

// Team is the opened directory of a team. On Linux its descriptor is used,
// elsewhere its os.Root.
type Team interface {
	Fd() uintptr
	Root() (*os.Root, error)
}

// Dir is the .locks directory of a team. It may be used by several goroutines
// at once.
type Dir struct {
	team   Team
	path   string // the team's
	rights rights
	place  // .locks itself
}

// Open opens the .locks directory of a team that is at teamPath. It refuses a
// .locks that is a symbolic link or no directory. team stays the caller's, who
// closes it after the last use of the Dir and its locks; the Dir itself keeps
// descriptors, until Close.
func Open(team Team, teamPath string) (*Dir, error) {
	path, err := filepath.Abs(teamPath)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", filepath.Join(teamPath, locksDir), err)
	}
	d := &Dir{team: team, path: path}
	if err := d.openPlace(); err != nil {
		return nil, fmt.Errorf("open %s: %w", filepath.Join(path, locksDir), bare(err))
	}
	return d, nil
}

// Close ends the use of the directory. Locks that are held stay held.
func (d *Dir) Close() error { return d.closePlace() }

// Lock waits for the lock name, for ever when timeout is 0 or less. When the
// timeout is over the error is a *HeldError; when ctx ends, it wraps ctx's.
// When the lock file is absent, seen is called, may be nil, and must return
// nil before the file is made; its error is returned as it is. On a read-only
// file system an absent lock file gives syscall.EROFS, wrapped.
func (d *Dir) Lock(ctx context.Context, name string, m Mode, timeout time.Duration, seen func() error) (*Lock, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	var expired <-chan time.Time
	return d.lock(name, m, seen, func() (*file, error) {
		// Tried first: the common case starts no goroutine.
		f, err := d.try(name, m)
		if err != errHeld {
			return f, err
		}
		if expired == nil && timeout > 0 {
			expired = time.After(timeout)
		}
		return d.wait(ctx, expired, name, m)
	})
}

// Try is Lock without any waiting: a *HeldError at once when somebody holds it.
func (d *Dir) Try(name string, m Mode, seen func() error) (*Lock, error) {
	return d.lock(name, m, seen, func() (*file, error) { return d.try(name, m) })
}

// Held reports whether somebody holds the lock Exclusive. It takes the lock
// Shared for an instant, so a Try of Exclusive at that instant may fail. With no
// lock file there is no holder; none is made.
func (d *Dir) Held(name string) (bool, error) {
	absent := func() error { return errAbsent }
	l, err := d.acquire(name, Shared, absent, func() (*file, error) { return d.try(name, Shared) })
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

	errNoDirectory = errors.New("is no directory (links are not followed)")
)

// lock is acquire, with an error that says who holds the lock.
func (d *Dir) lock(name string, m Mode, seen func() error, get func() (*file, error)) (*Lock, error) {
	l, err := d.acquire(name, m, seen, get)
	if err == errHeld {
		held := &HeldError{Lock: name}
		held.PID, held.Command = d.holder(name)
		return nil, held
	}
	return l, err
}

// absent is errors.Is(err, fs.ErrNotExist), at a hundredth of the cost where the
// system itself said so (atomicfile.Absent has the reason).
func absent(err error) bool {
	if p, ok := err.(*fs.PathError); ok {
		if number, ok := p.Err.(syscall.Errno); ok {
			return number.Is(fs.ErrNotExist)
		}
	}
	return errors.Is(err, fs.ErrNotExist)
}

// replacements is how often a lock file may be another one, after it was
// locked, than the one at its path, before somebody is taken to be at work.
const replacements = 100

// acquire gets the lock through get (errHeld: not to be had) and confirms that
// it is the right file; it makes the file when it is absent.
func (d *Dir) acquire(name string, m Mode, seen func() error, get func() (*file, error)) (*Lock, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("lock %q: %w", name, fs.ErrInvalid)
	}
	for n := 0; n < replacements; n++ {
		if n > 0 {
			// Not the file at the path: the directory may be another one.
			if err := d.again(); err != nil {
				return nil, fmt.Errorf("lock %s: %w", name, err)
			}
		}
		f, err := get()
		switch {
		case absent(err):
			if seen != nil {
				if err := seen(); err != nil {
					return nil, err
				}
			}
			err := d.create(name)
			if err != nil && (n > 0 || !absent(err)) {
				return nil, fmt.Errorf("lock %s: %w", name, err)
			}
			continue // not there: .locks was removed, and may be there again
		case err == errHeld:
			return nil, err
		case err != nil:
			if e := d.regular(name); e != nil {
				err = e
			}
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		if m == Often && f.trusted() {
			return d.held(name, f), nil
		}
		l, err := d.confirm(name, f)
		if err != nil {
			f.drop()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		if l != nil {
			return l, nil
		}
		f.drop()
	}
	return nil, fmt.Errorf("lock %s: %s is being replaced again and again", name, d.filePath(name))
}

// Trust is how long a lock that is taken Often relies on what the last look at
// its path showed, if nothing that the open file itself tells speaks against it:
// a look takes as long as everything else about a lock. Whoever removes,
// replaces or renames a lock file changes the file, which is seen at once; only
// a directory on the way to it that is moved by hand is noticed so much later.
const Trust = 100 * time.Millisecond

// confirm compares the file held with the one now at its path: nil when they
// differ.
func (d *Dir) confirm(name string, f *file) (*Lock, error) {
	now, err := d.look(name)
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !now.regular():
		return nil, d.irregular(name)
	case !f.is(&now):
		return nil, nil
	}
	// What a process killed while making the file left undone. Not needed to
	// hold the lock, so what cannot be mended is left alone.
	_ = d.mend(name, &now)
	f.looked(&now)
	return d.held(name, f), nil
}

func (d *Dir) held(name string, f *file) *Lock {
	l := &Lock{dir: d, name: name, stamp: f.stamp()}
	l.file.Store(f)
	return l
}

// regular returns an error when something else than a regular file is at the
// lock's path.
func (d *Dir) regular(name string) error {
	if now, err := d.look(name); err == nil && !now.regular() {
		return d.irregular(name)
	}
	return nil
}

func (d *Dir) irregular(name string) error {
	return fmt.Errorf("%s is not a regular file", d.filePath(name))
}

func (d *Dir) filePath(name string) string { return filepath.Join(d.path, locksDir, name) }

// try takes the lock on the file at the path or returns errHeld.
func (d *Dir) try(name string, m Mode) (*file, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	for {
		err := f.try(m)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case err == errHeld && d.stale(f):
			// The file that is held is no longer the lock's.
			f.drop()
			if f, err = d.openNew(name); err != nil {
				return nil, err
			}
			continue
		}
		d.keep(f)
		return nil, err
	}
}

func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
