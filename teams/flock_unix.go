//go:build unix

package teams

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// canInherit says that a program can be given an open file.
const canInherit = true

// tryFlock takes the flock on a file, unless somebody has it. Unlike a lock of
// package lockfile it is shared with the programs that inherit the file.
func tryFlock(f *os.File) (held bool, err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}
