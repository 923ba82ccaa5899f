package watcher

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A directory that was moved away, as a retired member's, is watched no longer.
func TestDirsMoved(t *testing.T) {
	dir := t.TempDir()
	stays, goes := filepath.Join(dir, "stays"), filepath.Join(dir, "member", "inbox")
	for _, d := range []string{stays, goes} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDirs()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.Add(stays, goes)
	if err := os.Rename(filepath.Dir(goes), filepath.Join(dir, "retired")); err != nil {
		t.Fatal(err)
	}
	d.Add(stays)
	if got := d.fs.WatchList(); !slices.Equal(got, []string{stays}) {
		t.Errorf("watched: %q", got)
	}
}
