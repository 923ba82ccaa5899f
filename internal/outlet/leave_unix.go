//go:build unix

package outlet

import (
	"os"

	"golang.org/x/sys/unix"
)

// leaving calls gone once the reader of a pipe or socket has closed it. The
// function that it returns ends the wait.
func leaving(f *os.File, gone func()) (stop func()) {
	nothing := func() {}
	conn, err := f.SyscallConn()
	if err != nil {
		return nothing
	}
	// A descriptor of our own: the file's may be closed, and its number taken,
	// while the kernel is asked.
	fd := -1
	conn.Control(func(own uintptr) {
		var st unix.Stat_t
		if unix.Fstat(int(own), &st) != nil {
			return
		}
		if kind := uint32(st.Mode) & unix.S_IFMT; kind == unix.S_IFIFO || kind == unix.S_IFSOCK {
			fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0)
		}
	})
	if fd < 0 || err != nil {
		return nothing
	}
	woken, wake, err := os.Pipe()
	if err != nil {
		unix.Close(fd)
		return nothing
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// No event is asked for: only an error or a hang-up ends the wait.
		fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(woken.Fd()), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(fds, -1)
			if err == unix.EINTR {
				continue
			}
			if err == nil && fds[1].Revents == 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				gone()
			}
			return
		}
	}()
	return func() {
		wake.Close()
		<-ended
		woken.Close()
		unix.Close(fd)
	}
}
