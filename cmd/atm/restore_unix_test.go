//go:build linux || darwin

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fill sends bob many messages, and returns a backup of them.
func (s *stage) fill(messages int) (file string) {
	s.t.Helper()
	var lines strings.Builder
	for i := range messages {
		fmt.Fprintf(&lines, `{"to":"bob","body":"message %d"}`+"\n", i)
	}
	c := s.command("send", "--batch", "--as", "alice")
	c.Stdin = strings.NewReader(lines.String())
	must(s.t, c.Run())
	file = filepath.Join(s.t.TempDir(), "all.tar")
	s.atm(0, "backup", file)
	return file
}

// A restore that is interrupted or killed says how to go on, and so does doctor until it has ended.
func TestRestoreEndsEarly(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const messages = 4000
	file := s.fill(messages)
	other := filepath.Join(t.TempDir(), "other.tar")
	s.atm(0, "send", "alice", "one more", "--as", "bob")
	s.atm(0, "backup", other)
	root := filepath.Join(t.TempDir(), "root")
	inbox := filepath.Join(root, "main", "bob", "inbox", "new", "*")
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		before, _ := filepath.Glob(inbox)
		c := s.command("restore", file, "--root", root)
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		must(t, c.Start())
		within(3*time.Minute, func() bool {
			names, _ := filepath.Glob(inbox)
			return len(names) > len(before)+20
		})
		must(t, c.Process.Signal(end))
		err, isExit := c.Wait().(*exec.ExitError)
		if !isExit {
			t.Fatalf("%v: it had ended before: %s", end, out.String())
		}
		says := fmt.Sprintf("of %d messages\natm: hint: run it again, and it goes on: atm restore %s --root %s\n", messages, file, root)
		if end == syscall.SIGINT && (err.ExitCode() != 130 || !strings.HasPrefix(out.String(), "atm: interrupted: restored ") || !strings.HasSuffix(out.String(), says)) {
			t.Errorf("exit %d: %s", err.ExitCode(), out.String())
		}
		finish := "restore " + file + " --root " + root
		for command, exit := range map[string]int{"doctor": 1, "init": 5, "restore " + other: 5} {
			if out := s.atm(exit, append(strings.Fields(command), "--root", root)...); !strings.Contains(out, finish) {
				t.Errorf("%s: %s", command, out)
			}
		}
	}
	names, _ := filepath.Glob(inbox)
	want := fmt.Sprintf("restored %d messages; %d already there\n", messages-len(names), len(names))
	if out := s.atm(0, "restore", file, "--root", root); !strings.HasPrefix(out, want) {
		t.Errorf("%s, not %s", out, want)
	}
	if out := s.atm(0, "ls", "bob", "--count", "--root", root); out != fmt.Sprintln(messages) {
		t.Error(out)
	}
	if out := s.atm(1, "doctor", "--root", root); strings.Contains(out, "did not finish") {
		t.Error(out)
	}
}
