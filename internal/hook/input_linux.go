package hook

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// readAll asks the kernel before each read: a timer of the runtime's would
// cost a hook more than all its reading.
func readAll(f *os.File, patience time.Duration) ([]byte, error) {
	fd := int(f.Fd())
	return gather(func(p []byte) (int, error) {
		if err := readable(fd, patience); err != nil {
			return 0, err
		}
		return f.Read(p)
	})
}

// readable waits until there is something to read, or the end.
func readable(fd int, patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		left := max(0, time.Until(end))
		wait := syscall.NsecToTimeval(left.Nanoseconds())
		var set syscall.FdSet
		const word = 8 * int(unsafe.Sizeof(set.Bits[0]))
		if fd >= word*len(set.Bits) {
			return syscall.EBADF
		}
		set.Bits[fd/word] = 1 << (fd % word)
		n, err := syscall.Select(fd+1, &set, nil, nil, &wait)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case n > 0:
			return nil
		case left == 0:
			return silent(patience)
		}
	}
}
