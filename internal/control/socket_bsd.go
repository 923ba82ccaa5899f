//go:build darwin || freebsd

package control

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// newSocket holds the fork lock, since macOS cannot make a socket that a child
// does not inherit in one step.
func newSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	return prepared(fd)
}

func acceptOne(fd int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	conn, _, err := unix.Accept(fd)
	if err != nil {
		return -1, err
	}
	return prepared(conn)
}

func prepared(fd int) (int, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// peerOf says who is at the other end.
func peerOf(fd int) (Peer, error) {
	const solLocal = 0 // SOL_LOCAL
	c, err := unix.GetsockoptXucred(fd, solLocal, unix.LOCAL_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	return Peer{UID: int(c.Uid), PID: peerPID(fd)}, nil
}

// throughDescriptor: no file system shows open directories here by default.
func throughDescriptor(int) (string, bool) { return "", false }
