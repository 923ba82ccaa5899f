//go:build linux || darwin

package output

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// inPipe is how many bytes can be read from a pipe now; ok is false for anything else.
func inPipe(f *os.File) (n int, ok bool) {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return 0, false
	}
	onDescriptor(f, func(fd int) { n, err = unix.IoctlGetInt(fd, fionread) })
	return n, err == nil
}

// Waiting is how many bytes can be read from a pipe now; for as long as it is
// empty and somebody may still write to it, it is given that much time.
func Waiting(f *os.File, patience time.Duration) int {
	if _, isPipe := inPipe(f); isPipe {
		poll(f, unix.POLLIN, patience)
	}
	n, _ := inPipe(f)
	return n
}

// ReaderGone reports whether nobody has the other end of a pipe open any more.
func ReaderGone(f *os.File) bool { return poll(f, unix.POLLOUT, 0)&(unix.POLLERR|unix.POLLHUP) != 0 }

// poll waits for events of a descriptor and returns those that came.
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
