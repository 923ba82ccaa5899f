package atomicfile

import (
	"errors"
	"io/fs"
	"syscall"
)

// Absent reports whether an error says that there is no such file, as
// errors.Is(err, fs.ErrNotExist) does. That asks each error of a chain for the
// methods it may have, and the runtime makes a table for each such question when
// it is first asked: 10 µs of a command that finds nothing amiss.
func Absent(err error) bool {
	for at := err; ; {
		switch e := at.(type) {
		case nil:
			return false
		case *fs.PathError:
			at = e.Err
		case syscall.Errno:
			return e.Is(fs.ErrNotExist)
		default:
			return errors.Is(at, fs.ErrNotExist)
		}
	}
}
