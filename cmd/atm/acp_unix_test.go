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

	"github.com/agentteammail/atm/cmd/internal/testteam"
)

// newACPTeam makes a team for agents that speak ACP, with a person at its commands.
func newACPTeam(t *testing.T) *testteam.Team {
	t.Helper()
	s := testteam.New(t, "bob", "me")
	s.Env = append(s.Env, "ATM_AGENT=me")
	t.Cleanup(func() { s.Command("atm", "stop", "bob").Run() })
	return s
}

// The SDK's own example agent answers a message; its requests are approved and rejected, its turn is cancelled, and it
// ends with its runner.
func TestACPExampleAgent(t *testing.T) {
	t.Parallel()
	s := newACPTeam(t)
	s.Atm("run", "bob", "--detach", "--driver", "acp", "--", "agent")
	for word, says := range map[string]string{"approve": "I've successfully updated the configuration.", "reject": "I'll skip the configuration update."} {
		done := make(chan string)
		go func() { out, _ := s.Command("atm", "ask", "bob", "Go on.").Output(); done <- string(out) }()
		s.Eventually("asked", func() bool {
			return strings.Contains(s.Atm("pending"), "1 Allow this change | 2 Skip this change")
		})
		if out := s.Atm("pending"); !strings.Contains(out, "/project/config.json # Modifying critical configuration file") {
			t.Error(out)
		}
		s.Atm(word, "bob")
		if out := <-done; !strings.Contains(out, says) || !strings.Contains(out, "ACP Go Example Agent") {
			t.Errorf("%s: %s", word, out)
		}
	}
	s.Atm("send", "bob", "And again.")
	s.Eventually("at work", func() bool { // before that it would not hear that it is cancelled
		return strings.Count(s.Atm("screen", "bob", "--last", "500"), "ACP Go Example Agent") == 3
	})
	s.Atm("interrupt", "bob")
	var h struct {
		Turns []struct {
			Status, Prompt string
			Tools          []struct{ Name, Title string } `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal([]byte(s.Atm("history", "bob", "--json")), &h); err != nil || len(h.Turns) != 3 {
		t.Fatal(err, h)
	}
	if last := h.Turns[2]; last.Status != "cancelled" || !strings.Contains(last.Prompt, "And again.") || len(h.Turns[0].Tools) != 2 || h.Turns[0].Tools[1].Name != "edit" {
		t.Errorf("%+v", h)
	}
	s.Atm("stop", "bob")
	s.Eventually("nothing left", func() bool { // its runner's process ends a moment after it has let go of the lock
		out, _ := exec.Command("pgrep", "-f", "atm-runner|agent").Output()
		return !ours(string(out), s.Dir)
	})
}

// A runner that is killed at a random moment, or when a message has just been read, loses no message, and its agent ends
// too.
func TestACPRunnerIsKilled(t *testing.T) {
	t.Parallel()
	s := newACPTeam(t)
	var sent []string
	unread := func() int {
		files, err := os.ReadDir(filepath.Join(s.Dir, ".atm/main/bob/inbox/new"))
		must(t, err)
		return len(files)
	}
	for i := range 6 {
		s.Atm("run", "bob", "--detach", "--driver", "acp", "--", "fakeagent", "acp")
		for range 3 {
			var m struct{ ID string }
			json.Unmarshal([]byte(s.Atm("send", "bob", fmt.Sprint("number ", i, ".", len(sent)), "--json")), &m)
			sent = append(sent, m.ID)
		}
		if i%2 == 0 {
			time.Sleep(time.Duration(rand.IntN(900)) * time.Millisecond)
		} else {
			for n, end := unread(), time.Now().Add(time.Second); unread() >= n && time.Now().Before(end); {
			}
		}
		var info struct{ Runner int }
		data, err := os.ReadFile(filepath.Join(s.Dir, ".atm/main/bob/run/run.json"))
		if err == nil {
			err = json.Unmarshal(data, &info)
		}
		must(t, err)
		syscall.Kill(info.Runner, syscall.SIGKILL)
		s.Eventually("off", func() bool { return strings.Contains(s.Atm("team"), "bob  off") })
		s.Eventually("ended", func() bool {
			out, _ := exec.Command("pgrep", "-f", "^fakeagent acp").Output()
			return !ours(string(out), s.Dir)
		})
	}
	s.Atm("run", "bob", "--detach", "--driver", "acp", "--", "fakeagent", "acp")
	s.Eventually("all read", func() bool { return !strings.Contains(s.Atm("team"), "unread") })
	s.Atm("wait", "--idle", "bob")
	history := s.Atm("history", "bob", "--json", "--limit", "0")
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
