package atomicfile

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A FIFO is never opened: who waits at its other end would be let go.
func TestFIFOIsNotOpened(t *testing.T) {
	d := open(t, nil)
	path := filepath.Join(d.Path(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip("no FIFOs here: ", err)
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip("no inotify: ", err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open("fifo"); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	if _, err := d.ReadFile("fifo", 10); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	if n, err := unix.Read(fd, make([]byte, 4096)); n > 0 || err != unix.EAGAIN {
		t.Errorf("it was opened: %v", err)
	}
}
