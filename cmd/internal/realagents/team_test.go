//go:build linux

package realagents

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
)

// A team is agents that are real programs, and those who drive them. With one agent that is bob, and
// lead asks him; then the methods about bob apply.
type team struct {
	*kit
	dir  string
	home string          // of the person who works there; "": the kit's directory
	kits map[string]*kit // by agent
}

// newTeam sets a team up: the program of each agent, and the names of the others.
func newTeam(t *testing.T, agents map[string]string, others []string, flags ...string) *team {
	t.Helper()
	s := &team{kits: map[string]*kit{}}
	for agent, program := range agents {
		s.kit = newKit(t, program, flags...)
		s.kits[agent] = s.kit
		others = append(others, agent)
	}
	s.dir = filepath.Join(s.kit.dir, "team")
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.do(append([]string{"init"}, others...)...)
	return s
}

func newBob(t *testing.T, program string, flags ...string) *team {
	t.Helper()
	return newTeam(t, map[string]string{"bob": program}, []string{"lead"}, flags...)
}

// in is the same team in a subtest, which shows where things stand when it fails.
func (s *team) in(t *testing.T) *team {
	k, sub := *s.kit, *s
	k.t, sub.kit = t, &k
	t.Cleanup(func() {
		if t.Failed() {
			sub.show()
		}
	})
	return &sub
}

func (s *team) show() {
	for agent, k := range s.kits {
		for _, args := range [][]string{{"screen", agent}, {"events", agent, "--limit", "40"}, {"status", agent}} {
			out, _ := s.try(args...)
			s.t.Logf("%s:\n%s", args, out)
		}
		for _, l := range k.log() {
			if l.Kind != "side" {
				s.t.Logf("model: %.300q", fmt.Sprint(l.Kind, " ", l.User))
			}
		}
	}
}

// env is the environment of a person who works in the team's directory.
func (s *team) env() []string {
	path := "PATH=" + bin + ":" + os.Getenv("PATH")
	env := []string{"HOME=" + cmp.Or(s.home, s.kit.dir), path, "LANG=C.UTF-8", "TERM=xterm-256color", "LIMIT=3m"}
	if s.home != "" { // what a person's command leaves running is found with the kit's leftovers
		env = append(env, "REAL_AGENTS_DIR="+s.kit.dir)
	}
	return env
}

// try runs atm, and returns what it printed and its exit code.
func (s *team) try(args ...string) (string, int) {
	s.t.Helper()
	return s.tryWith("", args...)
}

// tryWith is try with a stdin.
func (s *team) tryWith(stdin string, args ...string) (string, int) {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "atm"), args...)
	cmd.Dir, cmd.Env = s.dir, s.env()
	if stdin != "" { // an empty pipe is not the same as none
		cmd.Stdin = strings.NewReader(stdin)
	}
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

// do runs atm, which must work.
func (s *team) do(args ...string) string {
	s.t.Helper()
	out, code := s.try(args...)
	if code != 0 {
		s.t.Fatalf("atm %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// get runs atm, whose JSON is read into v.
func (s *team) get(v any, args ...string) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.do(append(args, "--json")...)), v); err != nil {
		s.t.Fatal(args, err)
	}
}

// send sends bob a message, and returns the short form of its id.
func (s *team) send(body string, flags ...string) string {
	s.t.Helper()
	out := s.do(append([]string{"send", "bob", body, "--as", "lead"}, flags...)...)
	f := strings.Fields(out)
	if len(f) < 2 || f[0] != "sent" {
		s.t.Fatalf("atm send printed %q", out)
	}
	return f[1]
}

// start starts bob, who may take longer than atm run waits.
func (s *team) start() (out string, code int, isSlow bool) {
	s.t.Helper()
	flags := []string{"run", "bob", "--detach", "--driver", s.program}
	if s.acp != nil { // the session's directory is said, and not the program's own
		flags = []string{"run", "bob", "--detach", "--driver", "acp", "--cwd", filepath.Join(s.kit.dir, "work")}
	}
	out, code = s.try(append(append(flags, "--"), s.command()...)...)
	return out, code, strings.Contains(out, "no prompt yet")
}

// run starts bob, and returns when he waits at his prompt.
func (s *team) run() {
	s.t.Helper()
	if out, code, isSlow := s.start(); code != 0 && !isSlow { // where the machine is busy it says other things than ready
		s.t.Fatalf("atm run --detach: exit %d\n%s", code, out)
	}
	s.idle()
}

// runTrust starts bob, who begins by asking whether something is to be trusted.
func (s *team) runTrust() {
	s.t.Helper()
	if out, code, isSlow := s.start(); (code == 0 || !strings.Contains(out, "trust")) && !isSlow {
		s.t.Errorf("atm run --detach: exit %d\n%s", code, out)
	}
	s.wait("bob to ask", func() bool { return s.state() == "blocked" })
}

// chooseBelow has a person at bob's terminal choose the option below the one that is marked.
func (s *team) chooseBelow(option string) {
	s.t.Helper()
	s.do("type", "bob", "--raw", `\e[B`)
	marked := regexp.MustCompile(`[❯›] (\d\. )?` + option)
	s.wait("the mark at "+option, func() bool { return marked.MatchString(s.do("screen", "bob")) })
	s.do("type", "bob", "--raw", `\r`)
}

// stop stops bob, of whom nothing is left then.
func (s *team) stop() {
	s.t.Helper()
	s.do("stop", "bob")
	if left := s.leftovers(); left != "" {
		s.t.Errorf("after atm stop:\n%s", left)
	}
	if state := s.state(); state != "off" {
		s.t.Errorf("it is %s", state)
	}
}

// wait waits for something to be so: as long as it may take on a slow machine.
func (s *team) wait(what string, isSo func() bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !isSo(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// isPushed reports whether bob's mail is given to his program beside its prompt.
func (s *team) isPushed() bool {
	s.t.Helper()
	var status struct{ Ways control.Ways }
	s.get(&status, "status", "bob")
	return status.Ways.IsPush()
}

func (s *team) state() string {
	s.t.Helper()
	var status struct{ State string }
	s.get(&status, "status", "bob")
	return status.State
}

// idle waits until bob waits for mail and has read what there was.
func (s *team) idle() {
	s.t.Helper()
	s.wait("bob to be idle", func() bool {
		var status struct {
			State  string
			Unread int
		}
		s.get(&status, "status", "bob")
		return status.State == "idle" && status.Unread == 0
	})
}

// question is an open one, as atm pending tells it.
type question struct{ ID, Kind, Tool, Prompt string }

func (s *team) pending() []question {
	s.t.Helper()
	var p struct{ Pending []question }
	s.get(&p, "pending")
	return p.Pending
}

// asks waits for what bob asks.
func (s *team) asks() (q question) {
	s.t.Helper()
	s.wait("a question", func() bool {
		for _, q = range s.pending() {
			return q.ID != ""
		}
		return false
	})
	return q
}

// has reports whether a message to bob has come to a stage, as atm trace knows it.
func (s *team) has(id, stage string) bool {
	s.t.Helper()
	var trace struct {
		Recipients []struct {
			Stages []struct{ Stage, At string }
		}
	}
	s.get(&trace, "trace", id)
	for _, r := range trace.Recipients {
		for _, st := range r.Stages {
			if st.Stage == stage && st.At != "" {
				return true
			}
		}
	}
	return false
}

// getsOnce waits until the model has got a message, and checks that it came once, under a line of
// ours. How a program keeps a tab or a blank line of the text is its own affair.
func (s *team) getsOnce(id, body string) {
	s.t.Helper()
	s.wait("the model to get "+id, func() bool { return len(s.prompts(id)) > 0 })
	got := s.prompts(id)
	head, text, _ := strings.Cut(s.exact(got[0]), "\n")
	if s.isPushed() != strings.Contains(got[0], letter.NotTyped) {
		s.t.Errorf("it is pushed to: %v, and the model got %q", s.isPushed(), got)
	}
	body = letter.EscapeMail(body)
	isSame := text == "  "+strings.ReplaceAll(body, "\n", "\n  ")+"\n"+letter.End
	if strings.Contains(body, "\t") {
		isSame = strings.Join(strings.Fields(text), " ") == strings.Join(strings.Fields(body+" "+letter.End), " ")
	}
	if len(got) != 1 || !strings.HasPrefix(head, "[atm "+id+" from lead") || !isSame {
		s.t.Errorf("the model got %q, want one under our line with\n%q", got, body)
	}
}
