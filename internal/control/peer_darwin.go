package control

import "golang.org/x/sys/unix"

func peerPID(fd int) int {
	const solLocal = 0 // SOL_LOCAL
	pid, err := unix.GetsockoptInt(fd, solLocal, unix.LOCAL_PEERPID)
	if err != nil {
		return 0
	}
	return pid
}
