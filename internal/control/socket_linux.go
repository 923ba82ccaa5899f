package control

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func newSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}

func acceptOne(fd int) (int, error) {
	conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	return conn, err
}

// peerOf says who is at the other end, as of when it connected or listened.
func peerOf(fd int) (Peer, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	return Peer{UID: int(c.Uid), PID: int(c.Pid)}, nil
}

// throughDescriptor names the socket in an open directory, where /proc is.
func throughDescriptor(fd int) (string, bool) {
	dir := fmt.Sprintf("/proc/self/fd/%d", fd)
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return "", false
	}
	return dir + "/" + SocketName, true
}
