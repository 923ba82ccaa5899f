//go:build darwin || freebsd

package child

import "golang.org/x/sys/unix"

func eraseRunes(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TIOCGETA)
	if err != nil {
		return err
	}
	t.Iflag |= iutf8
	return unix.IoctlSetTermios(fd, unix.TIOCSETA, t)
}

// signalTerminal is left to the group's members: what the ioctl takes differs.
func signalTerminal(int, unix.Signal) error { return unix.EINVAL }

// keepFiles has nothing to do: what is opened here is O_CLOEXEC.
func keepFiles() {}
