//go:build unix

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

func newTeam(t *testing.T) (*teamdir.Root, *teamdir.Team) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root")
	_, err := rootdir.Make(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := teamdir.Open(path, notices.Tell)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	team, err := r.CreateTeam("main")
	if err != nil {
		t.Fatal(err)
	}
	return r, team
}

func find(checks []Check, code string) (c Check) {
	for _, c = range checks {
		if c.Code == code {
			return c
		}
	}
	return Check{}
}

// Whoever shares a root that another user made is told so. That is no mistake, and no chmod changes it.
func TestRootOfAnother(t *testing.T) {
	r, _ := newTeam(t)
	c := find(Examine(t.Context(), r, rootdir.Place{UID: os.Getuid() + 1}, "1", false), "root.shared")
	if c.Severity != "info" || strings.Contains(c.Fix, "chmod") {
		t.Error(c)
	}
	if err := os.Chmod(r.Path, 0o707); err != nil {
		t.Fatal(err)
	}
	c = find(Examine(t.Context(), r, rootdir.Place{UID: os.Getuid()}, "1", false), "root.shared")
	if c.Severity != "warning" || !strings.HasPrefix(c.Fix, "chmod go-w ") {
		t.Error(c)
	}
}

// Only the owner of a directory is told to chmod it.
func TestFixOfAnotherOwner(t *testing.T) {
	r, team := newTeam(t)
	open := team.Dir().Join("bob/inbox")
	if err := team.Store.Create(t.Context(), "bob"); err != nil || os.Chmod(open, 0o707) != nil {
		t.Fatal(err)
	}
	for uid, want := range map[int]string{os.Getuid(): "chmod 700 " + open, os.Getuid() + 1: "ls -ld " + open} {
		if c := find(Examine(t.Context(), r, rootdir.Place{UID: uid}, "1", false), "mode.open"); c.Fix != want {
			t.Errorf("user %d: %v", uid, c)
		}
	}
}

// Where a lock cannot be made, nothing can be marked.
func TestLocksNotWritable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write anywhere")
	}
	r, team := newTeam(t)
	locks := team.Dir().Join(".locks")
	if err := os.Chmod(locks, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(locks, 0o700)
	c := find(Examine(t.Context(), r, rootdir.Place{UID: os.Getuid()}, "1", false), "team.locks")
	if c.Severity != "error" || c.Fix != "chmod -R u+rwX "+locks {
		t.Error(c)
	}
}
