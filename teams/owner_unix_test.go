//go:build unix

package teams

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A FIFO where a file should be is not waited for.
func TestFIFO(t *testing.T) {
	top := world(t, "dir wt", "dir linked/x", "file linked/.git gitdir: x", "dir app/.git/info", "dir app/.atm", "root .atm", "dir a/.atm", "dir state/roots")
	fifo := func(path ...string) {
		t.Helper()
		if err := syscall.Mkfifo(filepath.Join(append([]string{top}, path...)...), 0o600); err != nil {
			t.Skip("no FIFOs here: ", err)
		}
	}
	fifo("wt", ".git")
	fifo("linked", "x", "commondir")
	fifo("app", ".git", "info", "exclude")
	fifo("a", ".atm", "FORMAT")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, ok := worktreeAt(filepath.Join(top, "wt")); ok {
			t.Error("a FIFO makes a worktree")
		}
		if wt, ok := worktreeAt(filepath.Join(top, "linked")); !ok || wt.common != "" {
			t.Errorf("a FIFO as commondir gives %+v", wt)
		}
		if changed, _, err := Exclude(filepath.Join(top, "app", ".atm")); changed || err == nil {
			t.Error("a FIFO is written to as the exclude file")
		}
		f, _, err := Find(Place{Dir: filepath.Join(top, "a"), UID: os.Getuid()})
		if err != nil || f.Path != filepath.Join(top, ".atm") {
			t.Errorf("found %+v, %v", f, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("waits for the other end")
	}
}
