package lockfile

import "sync/atomic"

// Lock is a lock that is held, until Unlock.
type Lock struct {
	dir  *Dir
	name string
	file atomic.Pointer[file] // nil once it is let go
}

// Unlock lets go, with LOCK_UN, so that a child just being started does not
// prolong it. Again is fine.
func (l *Lock) Unlock() error {
	f := l.file.Swap(nil)
	if f == nil {
		return nil
	}
	if err := f.unlock(); err != nil {
		f.drop()
		return err
	}
	l.dir.keep(f)
	return nil
}

// Current reports whether the lock is held and the file held is still the one
// at the lock's path. False means that somebody else may hold the lock too.
func (l *Lock) Current() bool {
	f := l.file.Load()
	if f == nil {
		return false
	}
	now, err := l.dir.look(l.name)
	return err == nil && f.is(now)
}
