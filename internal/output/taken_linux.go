package output

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Unread is how many bytes are in a pipe, asked at either end; ok is false for
// anything else.
func Unread(f *os.File) (n int, ok bool) {
	var st unix.Stat_t
	err := onDescriptor(f, func(fd int) error {
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFIFO {
			return unix.EINVAL
		}
		var err error
		n, err = unix.IoctlGetInt(fd, unix.TIOCINQ) // FIONREAD
		return err
	})
	return n, err == nil
}

// Waiting is how many bytes can be read from a pipe now; for as long as it is
// empty and somebody may still write to it, it is given that much time.
func Waiting(f *os.File, patience time.Duration) int {
	if _, isPipe := Unread(f); !isPipe {
		return 0
	}
	onDescriptor(f, func(fd int) error {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		return err
	})
	n, _ := Unread(f)
	return n
}

// ReaderGone reports whether nobody has the other end of a pipe open any more.
func ReaderGone(f *os.File) bool {
	gone := false
	onDescriptor(f, func(fd int) error {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(fds, 0)
		gone = err == nil && fds[0].Revents&unix.POLLERR != 0
		return err
	})
	return gone
}

// onDescriptor calls do without changing the file's blocking mode.
func onDescriptor(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(fd uintptr) { err = do(int(fd)) })
	if failed != nil {
		return failed
	}
	return err
}
