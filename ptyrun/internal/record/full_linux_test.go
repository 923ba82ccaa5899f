package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that is really full in the middle of a line, and then has room again.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	filler := filepath.Join(disk, "filler")
	must(t, os.WriteFile(filler, make([]byte, 128<<10), 0o600))
	told := 0
	w := create(t, Options{
		Path: filepath.Join(disk, "screen.cast"), Repaint: func() []byte { return []byte("SCREEN") },
		Failed: func(error) { told++ },
	})
	for range 40 {
		w.Output(bytes.Repeat([]byte("x"), 10<<10))
	}
	w.worker.Wait()
	if !errors.Is(w.Err(), unix.ENOSPC) {
		t.Fatalf("failed: %v", w.Err())
	}
	read(t, w.options.Path) // no torn line

	must(t, os.Remove(filler))
	until(t, "the recording to go on", func() bool { w.Output([]byte("after")); w.worker.Wait(); return w.Err() == nil })
	w.Exit(0)
	must(t, w.Close())
	got := read(t, w.options.Path)
	gap := slices.IndexFunc(got, func(e string) bool { return strings.Contains(e, "recording was interrupted: no space left") })
	if gap < 0 || !strings.HasSuffix(got[gap+2], `o "SCREEN"`) || !strings.HasSuffix(got[len(got)-1], `x "0"`) {
		t.Errorf("it ends with %q", got[max(0, len(got)-6):])
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
