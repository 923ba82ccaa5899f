//go:build !linux

package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// place is .locks as an os.Root. gofrs/flock opens by path, all else goes
// through the directory.
type place struct{ team, locks *os.Root }

// file is a lock file. It is open while it is locked.
type file struct{ *flock.Flock }

// entry is what lies at a lock's path.
type entry struct{ fs.FileInfo }

func (e *entry) regular() bool      { return e.Mode().IsRegular() }
func (e *entry) same(o *entry) bool { return os.SameFile(e.FileInfo, o.FileInfo) }
func (e *entry) perm() fs.FileMode  { return e.Mode().Perm() }

func (d *Dir) openPlace() error {
	team, err := d.team.Root()
	if err != nil {
		return err
	}
	info, err := team.Lstat(locksDir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errNoDirectory
	}
	locks, err := team.OpenRoot(locksDir)
	if err != nil {
		return err
	}
	if now, err := locks.Stat("."); err != nil || !os.SameFile(info, now) {
		locks.Close()
		return errors.New("was replaced meanwhile")
	}
	d.place, d.rights = place{team, locks}, rightsIn(&entry{info})
	return nil
}

func (d *Dir) closePlace() error { return d.locks.Close() }

// again finds out whether the team's path leads elsewhere than to the opened
// directory.
func (d *Dir) again() error {
	a, err1 := os.Stat(d.path)
	b, err2 := d.place.team.Stat(".")
	if err1 != nil || err2 != nil || !os.SameFile(a, b) {
		return fmt.Errorf("%s is another directory than before", d.path)
	}
	return nil
}

func (d *Dir) look(name string) (entry, error) {
	info, err := d.locks.Lstat(name)
	return entry{info}, err
}

func (d *Dir) open(name string) (*file, error) {
	if !refusesLinks {
		if err := d.regular(name); err != nil {
			return nil, err
		}
	}
	return d.openNew(name)
}

func (d *Dir) openNew(name string) (*file, error) {
	return &file{flock.New(d.filePath(name), flock.SetFlag(openFlags))}, nil
}

func (d *Dir) keep(*file)       {}
func (d *Dir) stale(*file) bool { return false }

func (f *file) looked(*entry) {}
func (f *file) trusted() bool { return false }
func (f *file) stamp() Stamp  { return Stamp{} }
func (f *file) touch()        {}

func (f *file) is(e *entry) bool {
	info, err := f.Stat()
	return err == nil && os.SameFile(info, e.FileInfo)
}

// try locks the file, or returns errHeld.
func (f *file) try(m Mode) (err error) {
	var ok bool
	if m != Shared {
		ok, err = f.TryLock()
	} else {
		ok, err = f.TryRLock()
	}
	if err == nil && !ok {
		return errHeld
	}
	return err
}

// wait locks the file, however long it takes.
func (f *file) wait(m Mode) error {
	if m != Shared {
		return f.Lock()
	}
	return f.RLock()
}

func (f *file) unlock() error {
	for {
		if err := f.Unlock(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// drop lets go of the file.
func (f *file) drop() { f.unlock() }

// create makes the lock file, or finds it made.
func (d *Dir) create(name string) error {
	f, err := d.locks.OpenFile(name, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", d.filePath(name), bare(err))
	}
	info, err := f.Stat()
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return d.mend(name, &entry{info})
}

func (d *Dir) chown(name string, uid, gid int) error { return d.locks.Lchown(name, uid, gid) }

func (d *Dir) chmod(name string, mode fs.FileMode) error { return d.locks.Chmod(name, mode) }
