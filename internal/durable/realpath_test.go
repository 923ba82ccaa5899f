package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRealPath(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(filepath.Join(top, "dir"), 0o700))
	must(t, os.Symlink("dir", filepath.Join(top, "link")))
	must(t, os.Symlink("nowhere", filepath.Join(top, "broken")))
	for path, want := range map[string]string{"link": "dir", "link/new/file": "dir/new/file", "broken": "", "broken/file": "", "link/../new": "new"} {
		real, err := RealPath(filepath.Join(top, path))
		if want != "" {
			want = filepath.Join(top, want)
		}
		if real != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q: %v", path, real, err)
		}
	}
}
