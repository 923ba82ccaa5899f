package durable

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A FIFO is never opened: the process that waits at its other end would go on.
func TestFIFOIsNotOpened(t *testing.T) {
	r := open(t, nil)
	path := r.Join("fifo")
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
	for _, flag := range []int{os.O_RDONLY, os.O_RDWR | os.O_CREATE, os.O_WRONLY | os.O_APPEND} {
		if _, err := r.OpenFile("fifo", flag); !errors.Is(err, ErrNotRegular) {
			t.Error(err)
		}
	}
	if _, err := r.ReadFile("fifo", 10); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	_, listed := r.Names("fifo")
	_, below := r.Sub("fifo")
	for _, err := range []error{listed, below, r.Sync("fifo"), r.Mkdir("fifo"), r.MkdirAll("fifo")} {
		if !errors.Is(err, ErrNotDirectory) {
			t.Error(err)
		}
	}
	if n, err := unix.Read(fd, make([]byte, 4096)); n > 0 || err != unix.EAGAIN {
		t.Errorf("it was opened: %v", err)
	}
}
