//go:build linux || darwin

package output

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// inPipe returns how many bytes can be read from a pipe now; ok is false for other files.
func inPipe(f *os.File) (n int, ok bool) {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return 0, false
	}
	onDescriptor(f, func(fd int) { n, err = unix.IoctlGetInt(fd, fionread) })
	return n, err == nil
}

// BytesWaiting returns how many bytes can be read from a pipe or a regular file. While a pipe is empty and has a writer,
// it waits for them as long as patience allows.
func BytesWaiting(r io.Reader, patience time.Duration) int {
	f := file(r)
	if _, isPipe := inPipe(f); isPipe {
		poll(f, unix.POLLIN, patience)
		n, _ := inPipe(f)
		return n
	}
	return bytesLeft(f)
}

// ReaderGone reports whether the reading end of a pipe is closed.
func ReaderGone(w io.Writer) bool {
	return poll(file(w), unix.POLLOUT, 0)&(unix.POLLERR|unix.POLLHUP) != 0
}

// poll waits for events on a file and returns those that occurred.
func poll(f *os.File, events int16, patience time.Duration) int16 {
	fds := []unix.PollFd{{Events: events}}
	onDescriptor(f, func(fd int) {
		fds[0].Fd = int32(fd)
		unix.Poll(fds, int(patience.Milliseconds()))
	})
	return fds[0].Revents
}

// onDescriptor calls do without changing the file's blocking mode.
func onDescriptor(f *os.File, do func(fd int)) {
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { do(int(fd)) })
	}
}
