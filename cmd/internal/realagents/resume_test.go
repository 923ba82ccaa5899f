//go:build linux

package realagents

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A conversation goes on in another process: after the runner and the program were killed, after a restart, and after a
// stop. The model gets what was said before together with the next message. Hooks tell its id, or Codex's server.
func TestResumeByID(t *testing.T) {
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			bob := newBob(t, program).in(t)
			said := bob.record()
			if program == "codex" {
				bob.run()
			} else {
				bob.installHooks()
			}
			bob.goesOnAgain(said, `resumed [^ ]*[0-9]`)
		})
	}
}

// A new conversation begins with a copy of another one, which stays as it is.
func TestFork(t *testing.T) {
	for _, program := range []string{"claude", "codex", "opencode"} {
		t.Run(program, func(t *testing.T) {
			bob := newBob(t, program).in(t)
			said := bob.record()
			bob.installHooks()
			bob.talks("first")
			bob.wait("the answer to be on the disk", func() bool { return bob.countKept("the word is first") > 1 })
			conversation := func() string {
				return regexp.MustCompile(`"session":"[^"]*"`).FindString(bob.do("status", "bob", "--json"))
			}
			first := conversation()
			bob.stop()
			bob.do(append([]string{"run", "bob", "--fork", "bob", "--driver", program, "--detach", "--"}, bob.command()...)...)
			bob.idle()
			before := len(said())
			bob.talks("second")
			if got := said()[before:]; !strings.Contains(got, "the word is first") {
				t.Errorf("the model is not told what was said before: %.2000q", got)
			}
			if conversation() == first {
				t.Errorf("it goes on in %s itself", first)
			}
			bob.stop()
		})
	}
}

// goesOnAgain ends bob in three ways. said is all that the model was told, how is what the next start says.
func (bob *team) goesOnAgain(said func() string, how string) {
	bob.t.Helper()
	bob.talks("first")
	bob.wait("the answer to be on the disk", func() bool { return bob.countKept("the word is first") > 1 })
	again := func() string {
		out, _ := bob.try(append([]string{"run", "bob", "--resume", "--driver", bob.program, "--detach", "--"}, bob.command()...)...)
		return out
	}
	for _, end := range []struct {
		name string
		do   func() string
	}{
		{"kill", func() string { bob.kill(); return again() }},
		{"restart", func() string { return bob.do("restart", "bob") }},
		{"stop", func() string { bob.stop(); return again() }},
	} {
		if out := end.do(); !regexp.MustCompile(how).MatchString(out) {
			bob.t.Errorf("after %s it says %q", end.name, out)
		}
		bob.idle()
		before := len(said())
		bob.talks("after " + end.name)
		if got := said()[before:]; !strings.Contains(got, "the word is first") {
			bob.t.Errorf("after %s the model is not told what was said before: %.2000q", end.name, got)
		}
	}
	bob.stop()
}

// talks has bob say a word, and waits until he has.
func (bob *team) talks(word string) {
	bob.t.Helper()
	id := bob.send("ECHO the word is " + word)
	bob.wait("the turn of "+word, func() bool { return bob.has(id, "turn_done") })
	bob.idle()
}

// countKept counts a text in the files of the program's home.
func (bob *team) countKept(text string) (n int) {
	bob.t.Helper()
	filepath.WalkDir(filepath.Join(bob.kit.dir, "home"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, _ := os.ReadFile(path)
			n += bytes.Count(data, []byte(text))
		}
		return nil // a file may be gone by now
	})
	return n
}

// kill kills the runner and all that it started, as a power cut would.
func (bob *team) kill() {
	bob.t.Helper()
	var pids struct{ Runner, PID int }
	data, err := os.ReadFile(filepath.Join(bob.dir, ".atm", "main", "bob", "run", "run.json"))
	if json.Unmarshal(data, &pids) != nil || pids.Runner <= 1 || pids.PID <= 1 {
		bob.t.Fatalf("run.json: %v: %s", err, data)
	}
	syscall.Kill(pids.Runner, syscall.SIGKILL)
	syscall.Kill(pids.PID, syscall.SIGKILL)
	bob.leftovers("--end")
	// Copilot asks whether to go on while it takes the one before for running, as it does until that was waited for.
	bob.wait("the program to be gone", func() bool { return syscall.Kill(pids.PID, 0) != nil })
	bob.wait("the lock to be free", func() bool { return bob.state() == "off" || bob.state() == "unknown" })
}
