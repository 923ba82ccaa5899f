package durable

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"testing"
	"time"

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

// Nobody waits for a FIFO that takes the place of a file or a directory between the look and the opening.
func TestFIFOTakesAPlace(t *testing.T) {
	r := open(t, nil)
	write(t, r, "file", "content")
	must(t, errors.Join(os.Mkdir(r.Join("dir"), 0o700), os.Symlink(r.Join("file"), r.Join("link"))))
	for _, name := range []string{"file.fifo", "dir.fifo"} {
		if err := unix.Mkfifo(r.Join(name), 0o600); err != nil {
			t.Skip("no FIFOs here: ", err)
		}
	}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	defer swapping.Wait()
	defer close(stop)
	for _, name := range []string{"file", "dir"} {
		swapping.Go(func() { // the FIFO and what it replaces change places
			for {
				select {
				case <-stop:
					return
				default:
					unix.Renameat2(unix.AT_FDCWD, r.Join(name), unix.AT_FDCWD, r.Join(name+".fifo"), unix.RENAME_EXCHANGE)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		opened, end := map[string]int{}, time.Now().Add(time.Second)
		count := func(name string, f *os.File, err error) {
			if f.Close(); err == nil {
				opened[name]++
			} else if !errors.Is(err, ErrNotRegular) && !errors.Is(err, ErrNotDirectory) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for time.Now().Before(end) {
			for _, flag := range []int{os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREATE} {
				f, err := r.OpenFile("file", flag)
				count("OpenFile", f, err)
				f, err = OpenRegular(r.Join("file"), flag)
				count("OpenRegular", f, err)
				f, err = OpenRegular(r.Join("link"), flag)
				count("OpenRegular through a link", f, err)
			}
			_, err := r.Names("dir")
			count("Names", nil, err)
			sub, err := r.Sub("dir")
			if err == nil {
				sub.Close()
			}
			count("Sub", nil, err)
			top, err := Open(r.Join("dir"))
			if err == nil {
				top.Close()
			}
			count("Open", nil, err)
			r.Move("dir/none", "dir/other")
		}
		t.Log(opened)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("somebody waits for ever")
	}
}
