//go:build unix

package output

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Standard returns stdout and stderr under other numbers, on which a write to a closed pipe is an error: on 1 and 2 package
// os ends the program for it. To catch the signal instead, as IgnoreSIGPIPE does, starts two threads. nil: they are not
// open, or the system is Windows, where nothing ends a program.
func Standard() (out, err io.Writer) {
	return another(1, "/dev/stdout"), another(2, "/dev/stderr")
}

func another(fd uintptr, name string) io.Writer {
	n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(n), name)
}
