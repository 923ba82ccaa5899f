//go:build unix

package git

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testtree"
)

// A FIFO in place of a file must not block.
func TestFIFO(t *testing.T) {
	top := testtree.Make(t, "dir wt", "repo linked/x", "file linked/.git gitdir: x", "repo app/.git", "dir app/.git/info", "dir app/.atm")
	for _, path := range []string{"wt/.git", "linked/x/commondir", "app/.git/info/exclude"} {
		if err := syscall.Mkfifo(filepath.Join(top, path), 0o600); err != nil {
			t.Skip("no FIFOs here: ", err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, ok := At(filepath.Join(top, "wt")); ok {
			t.Error("a FIFO makes a worktree")
		}
		if c, ok := At(filepath.Join(top, "linked")); !ok || c.Common != "" {
			t.Errorf("a FIFO as commondir gives %+v", c)
		}
		if err := Exclude(filepath.Join(top, "app", ".atm")); err == nil {
			t.Error("a FIFO is written to as the exclude file")
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("waits for the other end")
	}
}
