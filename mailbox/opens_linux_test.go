package mailbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// opensOf counts how often a file is opened from now on, by anybody.
func opensOf(t testing.TB, path string) func() int {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip("no inotify: ", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_DONT_FOLLOW); err != nil {
		t.Fatal(err)
	}
	n := 0
	return func() int {
		buf := make([]byte, 4096)
		for {
			m, err := unix.Read(fd, buf)
			if err != nil || m <= 0 {
				return n
			}
			for b := buf[:m]; len(b) >= unix.SizeofInotifyEvent; {
				if binary.NativeEndian.Uint32(b[4:])&unix.IN_OPEN != 0 {
					n++
				}
				b = b[unix.SizeofInotifyEvent+binary.NativeEndian.Uint32(b[12:]):]
			}
		}
	}
}
