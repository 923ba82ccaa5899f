package lockfile

import "sync/atomic"

// Lock is a lock that is held, until Unlock.
type Lock struct {
	dir   *Dir
	name  string
	stamp Stamp
	file  atomic.Pointer[file] // nil once it is let go
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
	return err == nil && f.is(&now)
}

// Stamp tells states of what a lock guards apart: it is another one after
// Moved. The zero Stamp is known of nothing, and is no other's equal.
type Stamp struct{ sec, nsec int64 }

// Known reports whether the system tells stamps.
func (s Stamp) Known() bool { return s != Stamp{} }

// Stamp is the lock's as it was when it was got.
func (l *Lock) Stamp() Stamp { return l.stamp }

// Moved says to whoever keeps open what the lock guards that it is about to be
// moved. Call it before the move, holding the lock Exclusive: who gets the lock
// afterwards gets another Stamp. A file of somebody else's that may not be
// written to is left as it is, and Trust is then how long its Stamp is wrong.
func (l *Lock) Moved() {
	if f := l.file.Load(); f != nil {
		f.touch()
	}
}
