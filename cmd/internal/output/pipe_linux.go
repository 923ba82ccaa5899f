package output

import (
	"os"

	"golang.org/x/sys/unix"
)

const fionread = unix.TIOCINQ

// Unread returns how many bytes a pipe holds, at either end, and 1 if a socket has any that its reader has not read;
// ok is false for other files.
func Unread(f *os.File) (n int, ok bool) {
	if n, ok = inPipe(f); ok {
		return n, ok
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return 0, false
	}
	onDescriptor(f, func(fd int) { n, err = unix.IoctlGetInt(fd, unix.TIOCOUTQ) })
	// A reader that closes a socket drops what it has not read, which is an error for the writer.
	if n > 0 || poll(f, 0, 0)&unix.POLLERR != 0 {
		n = 1
	}
	return n, err == nil
}
