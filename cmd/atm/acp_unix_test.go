//go:build linux || darwin

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An acpTeam is a team in its own directory, for agents that speak ACP.
type acpTeam struct {
	t   *testing.T
	dir string
	env []string
}

func newACPTeam(t *testing.T) *acpTeam {
	t.Helper()
	s := &acpTeam{t: t, dir: t.TempDir()}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ATM_") {
			s.env = append(s.env, kv)
		}
	}
	s.env = append(s.env, "GORACE=atexit_sleep_ms=0", "HOME="+s.dir, "XDG_STATE_HOME="+s.dir, "ATM_AGENT=me", "CLAUDECODE=")
	s.do("init", "bob", "me")
	t.Cleanup(func() { s.try("stop", "bob") })
	return s
}

func (s *acpTeam) try(args ...string) (string, error) {
	c := exec.Command("atm", args...)
	c.Dir, c.Env = s.dir, s.env
	out, err := c.Output()
	return string(out), err
}

func (s *acpTeam) do(args ...string) string {
	s.t.Helper()
	out, err := s.try(args...)
	if e, ok := err.(*exec.ExitError); ok {
		s.t.Fatalf("atm %q: %v\n%s%s", args, err, out, e.Stderr)
	}
	return out
}

func (s *acpTeam) eventually(about string, holds func() bool) {
	s.t.Helper()
	if !within(3*time.Minute, holds) {
		screen, _ := s.try("screen", "bob")
		s.t.Fatalf("not %s\n%s", about, screen)
	}
}

// The SDK's own example agent answers a message; its requests are approved and rejected, its turn is cancelled, and it
// ends with its runner.
func TestACPExampleAgent(t *testing.T) {
	t.Parallel()
	s := newACPTeam(t)
	s.do("run", "bob", "--detach", "--driver", "acp", "--", "agent")
	for word, says := range map[string]string{"approve": "I've successfully updated the configuration.", "reject": "I'll skip the configuration update."} {
		done := make(chan string)
		go func() { out, _ := s.try("ask", "bob", "Go on."); done <- out }()
		s.eventually("asked", func() bool {
			out, _ := s.try("pending")
			return strings.Contains(out, "1 Allow this change | 2 Skip this change")
		})
		if out := s.do("pending"); !strings.Contains(out, "edit: Modifying critical configuration file") {
			t.Error(out)
		}
		s.do(word, "bob")
		if out := <-done; !strings.Contains(out, says) || !strings.Contains(out, "ACP Go Example Agent") {
			t.Errorf("%s: %s", word, out)
		}
	}
	s.do("send", "bob", "And again.")
	s.do("wait", "--busy", "bob")
	s.do("interrupt", "bob")
	var h struct {
		Turns []struct {
			Status, Prompt string
			Tools          []struct{ Name, Title string } `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal([]byte(s.do("history", "bob", "--json")), &h); err != nil || len(h.Turns) != 3 {
		t.Fatal(err, h)
	}
	if last := h.Turns[2]; last.Status != "cancelled" || !strings.Contains(last.Prompt, "And again.") || len(h.Turns[0].Tools) != 2 || h.Turns[0].Tools[1].Name != "edit" {
		t.Errorf("%+v", h)
	}
	s.do("stop", "bob")
	if out, _ := exec.Command("pgrep", "-f", "atm-runner|agent").Output(); ours(string(out), s.dir) {
		t.Errorf("left, of these: %s", out)
	}
}

// A runner that is killed at a random moment loses no message, and its agent ends too.
func TestACPRunnerIsKilled(t *testing.T) {
	t.Parallel()
	s := newACPTeam(t)
	var sent []string
	for i := range 6 {
		s.do("run", "bob", "--detach", "--driver", "acp", "--", "fakeagent", "acp")
		for range 3 {
			var m struct{ ID string }
			json.Unmarshal([]byte(s.do("send", "bob", fmt.Sprint("number ", i, ".", len(sent)), "--json")), &m)
			sent = append(sent, m.ID)
		}
		time.Sleep(time.Duration(rand.IntN(900)) * time.Millisecond)
		var info struct{ Runner int }
		data, err := os.ReadFile(filepath.Join(s.dir, ".atm/main/bob/run/run.json"))
		if err == nil {
			err = json.Unmarshal(data, &info)
		}
		if err != nil {
			t.Fatal(err)
		}
		syscall.Kill(info.Runner, syscall.SIGKILL)
		s.eventually("off", func() bool { out, _ := s.try("team"); return strings.Contains(out, "bob  off") })
		s.eventually("ended", func() bool {
			out, _ := exec.Command("pgrep", "-f", "^fakeagent acp").Output()
			return !ours(string(out), s.dir)
		})
	}
	s.do("run", "bob", "--detach", "--driver", "acp", "--", "fakeagent", "acp")
	s.eventually("all read", func() bool { return !strings.Contains(s.do("team"), "unread") })
	s.do("wait", "--idle", "bob")
	history := s.do("history", "bob", "--json", "--limit", "0")
	for i, id := range sent {
		if n := strings.Count(history, fmt.Sprintf("number %d.%d", i/3, i)); n == 0 {
			t.Errorf("message %s (%d) was never a prompt", id, i)
		}
	}
}

// ours reports whether one of the processes has a directory as its working directory.
func ours(pids, dir string) bool {
	for pid := range strings.FieldsSeq(pids) {
		if at, err := os.Readlink("/proc/" + pid + "/cwd"); err == nil && at == dir {
			return true
		}
	}
	return false
}
