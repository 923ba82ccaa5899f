package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// Lock is a lock that is held. Keep it until Unlock: one that is garbage
// collected lets go.
type Lock struct {
	dir  *Dir
	name string
	file *flock.Flock
	info fs.FileInfo // of the file held
}

// Unlock lets go, with LOCK_UN, so that a child just being started does not
// prolong it, and closes the file. Again is fine.
func (l *Lock) Unlock() error { return unlock(l.file) }

// Current reports whether the lock is held and the file held is still the one
// at the lock's path. False means that somebody else may hold the lock too.
func (l *Lock) Current() bool {
	if !l.file.Locked() && !l.file.RLocked() {
		return false
	}
	now, err := l.dir.locks.Lstat(l.name)
	return err == nil && os.SameFile(l.info, now)
}

func unlock(f *flock.Flock) error {
	for {
		if err := f.Unlock(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
