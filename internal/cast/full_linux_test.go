package cast

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A disk that is really full, in the middle of a line, and then is not.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	filler := filepath.Join(disk, "filler")
	must(t, os.WriteFile(filler, make([]byte, 128<<10), 0o600))

	c := newClock()
	w := create(t, Options{Path: filepath.Join(disk, "screen.cast"), Now: c.Now, Repaint: func() []byte { return []byte("REPAINT") }})
	var told []error
	for range 40 {
		c.pass(time.Second)
		err := w.Output(bytes.Repeat([]byte("x"), 10<<10))
		if err == nil {
			err = w.Flush()
		}
		if err != nil {
			told = append(told, err)
		}
	}
	if len(told) != 1 || !errors.Is(told[0], unix.ENOSPC) {
		t.Errorf("told: %v", told)
	}
	conforms(t, w.o.Path) // no torn line, even while it is full

	must(t, os.Remove(filler))
	c.pass(time.Minute)
	must(t, w.Output([]byte("after")))
	must(t, w.Flush())
	must(t, w.Close())
	conforms(t, w.o.Path)
	got := read(t, w.o.Path)
	tail := got[len(got)-4:]
	if !strings.Contains(tail[0], "recording was interrupted: no space left on device") ||
		!strings.HasPrefix(tail[3], `1m40s o "after"`) || !strings.HasSuffix(tail[2], `"REPAINT"`) {
		t.Errorf("it ends with %q", tail)
	}

	// Full while a new file is begun.
	must(t, os.WriteFile(filler, nil, 0o600))
	w = create(t, Options{Path: w.o.Path, Now: c.Now, MaxSize: 50 << 10, Keep: 1, Repaint: func() []byte { return []byte("REPAINT") }})
	f, err := os.OpenFile(filler, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); err != nil {
			break
		}
	}
	must(t, f.Close())
	for range 100 {
		c.pass(10 * time.Second)
		w.Output(bytes.Repeat([]byte("y"), 5<<10))
		w.Flush()
	}
	must(t, os.Remove(filler))
	c.pass(time.Minute)
	must(t, w.Output([]byte("after")))
	w.Exit(0)
	must(t, w.Close())
	paths, err := Files(w.o.Path)
	must(t, err)
	for _, p := range paths {
		conforms(t, p)
	}
	got = read(t, w.o.Path)
	if !strings.HasSuffix(got[len(got)-1], `x "0"`) || !strings.HasSuffix(got[len(got)-2], `o "after"`) {
		t.Errorf("it ends with %q", got[len(got)-4:])
	}
}
