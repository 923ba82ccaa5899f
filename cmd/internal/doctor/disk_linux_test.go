package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

// A file system with space but without free inodes is reported.
func TestOutOfInodes(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "nr_inodes=2"); err != nil {
		t.Skip("mounting: ", err)
	}
	defer unix.Unmount(dir, 0)
	for _, want := range []bool{false, true} {
		d := &doctor{root: &teamdir.Root{Found: rootdir.Found{Path: dir}}, disk: fileSystemAt(dir)}
		d.checkFileSystem()
		if slices.ContainsFunc(d.checks, func(c Check) bool { return c.Code == "disk.low" && c.IsProblem() }) != want {
			t.Errorf("%+v", d.checks)
		}
		os.WriteFile(filepath.Join(dir, "last"), nil, 0o600)
	}
}
