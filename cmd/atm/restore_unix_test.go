//go:build linux || darwin

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A restore that is interrupted or killed leaves no root, and can be repeated. One that is interrupted leaves nothing.
func TestRestoreEndsEarly(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const messages = 4000
	var lines strings.Builder
	for i := range messages {
		fmt.Fprintf(&lines, `{"to":"bob","body":"message %d"}`+"\n", i)
	}
	c := s.command("send", "--batch", "--as", "alice")
	c.Stdin = strings.NewReader(lines.String())
	must(s.t, c.Run())
	above := t.TempDir()
	file, root := filepath.Join(t.TempDir(), "all.tar"), filepath.Join(above, "root")
	s.atm(0, "backup", file)
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		c := s.command("restore", file, "--root", root)
		must(t, c.Start())
		within(3*time.Minute, func() bool {
			names, _ := filepath.Glob(filepath.Join(above, ".root.*.making/main/bob/inbox/new/*"))
			return len(names) > 20
		})
		must(t, c.Process.Signal(end))
		err, isExit := c.Wait().(*exec.ExitError)
		if !isExit || end == syscall.SIGINT && err.ExitCode() != 130 {
			t.Fatalf("%v, or it had ended before", err)
		}
		left, _ := os.ReadDir(above)
		if end == syscall.SIGINT && len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
		s.atm(3, "ls", "bob", "--root", root)
	}
	s.atm(0, "restore", file, "--root", root)
	if out := s.atm(0, "ls", "bob", "--count", "--root", root); out != fmt.Sprintln(messages) {
		t.Error(out)
	}
}
