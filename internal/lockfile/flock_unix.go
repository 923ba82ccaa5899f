//go:build unix

package lockfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryFlock locks a file unless somebody else has it locked.
func tryFlock(f *os.File, m Mode) (isLocked bool, err error) {
	how := unix.LOCK_SH
	if m == Exclusive {
		how = unix.LOCK_EX
	}
	err = unix.EINTR
	for err == unix.EINTR {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	}
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

func unflock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
