package child

import "golang.org/x/sys/unix"

func eraseRunes(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag |= unix.IUTF8
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// signalTerminal lets the kernel signal the foreground group, which it can for
// the signals that keys stand for: no number is involved.
func signalTerminal(fd int, sig unix.Signal) error {
	return unix.IoctlSetInt(fd, unix.TIOCSIG, int(sig))
}

// keepFiles keeps every file that is open here from the next program, also those
// that we were given by whoever started us: a pipe among them would stay open as
// long as the program lives, and its reader wait.
func keepFiles() {
	// Before Linux 5.11 it cannot: ours are kept by O_CLOEXEC anyway.
	unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
}
