//go:build unix

package rootdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/testtree"
)

// A FIFO in place of FORMAT must not block.
func TestFIFO(t *testing.T) {
	top := testtree.Make(t, "root .atm", "dir a/.atm")
	if err := syscall.Mkfifo(filepath.Join(top, "a", ".atm", "FORMAT"), 0o600); err != nil {
		t.Skip("no FIFOs here: ", err)
	}
	f, _, err := Find(Place{Dir: filepath.Join(top, "a"), UID: os.Getuid()})
	if err != nil || f.Path != filepath.Join(top, ".atm") {
		t.Errorf("found %+v, %v", f, err)
	}
}

// An unreadable root of this user is not skipped.
func TestUnreadable(t *testing.T) {
	top := testtree.Make(t, "root .atm", "root a/.atm")
	unreadable := filepath.Join(top, "a", ".atm")
	must(t, os.Chmod(unreadable, 0))
	defer os.Chmod(unreadable, 0o700)
	f, _, err := Find(Place{Dir: filepath.Join(top, "a"), UID: os.Getuid()})
	if os.Getuid() != 0 && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("found %+v, %v", f, err)
	}
}
