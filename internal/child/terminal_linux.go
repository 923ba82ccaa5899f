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
