//go:build linux

package realagents

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// newCrew is a team under atm up, which a script of the cookbook drives.
func newCrew(t *testing.T, agents map[string]string, rules string) *team {
	t.Helper()
	s := newTeam(t, agents, []string{"script", "me"}).in(t)
	toml := "[members.me]\nperson = true\n"
	for agent, k := range s.kits {
		toml += fmt.Sprintf("[members.%s]\ncommand = %s\ndriver = %q\n", agent, strings.ReplaceAll(fmt.Sprintf("%q", k.command()), `" "`, `", "`), k.program)
	}
	if err := os.WriteFile(filepath.Join(s.dir, ".atm", "main", "team.toml"), []byte(toml+rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// recipe runs a script of the cookbook three times: interrupted, as by Ctrl-C, as soon as isCut says so,
// and twice to its end, where it prints something. After each nothing of the programs runs.
func (s *team) recipe(args []string, cutAt string, isCut func() bool, prints string) {
	s.t.Helper()
	args[0] = filepath.Join("..", "..", "docs", "cookbook", args[0])
	path, err := filepath.Abs(args[0])
	if err != nil {
		s.t.Fatal(err)
	}
	for run := range 3 {
		var out, errs bytes.Buffer
		cmd := exec.Command("sh", append([]string{path}, args[1:]...)...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env(), &out, &errs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		if run == 0 {
			s.wait(cutAt, isCut)
			syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		}
		err := cmd.Wait()
		s.t.Logf("run %d: %v\n%s%s", run, err, &out, &errs)
		if run > 0 && (err != nil || !strings.Contains(out.String(), prints)) {
			s.t.Errorf("run %d: %v, it prints %q", run, err, &out)
		}
		for agent, k := range s.kits {
			s.wait(agent+"'s processes to be gone", func() bool { return k.leftovers() == "" })
		}
	}
}

// TestPipeline is the cookbook's pipeline with Claude Code and Codex at its stages: what the one has
// said is what the other is told. Interrupted while Codex is at work, the script leaves nothing running;
// run again it sends nothing twice, and Claude Code, which had answered, is not asked again.
func TestPipeline(t *testing.T) {
	s := newCrew(t, map[string]string{"alice": "claude", "bob": "codex", "carol": "claude"}, "")
	s.recipe([]string{"pipeline.sh", "cache", "ECHO ünïque-7: a cache, please"}, "bob to be told the plan",
		func() bool { return len(s.kits["bob"].prompts("Do what this plan says")) > 0 }, "ünïque-7")
	for agent, want := range map[string]string{"alice": "Plan this", "bob": "Do what this plan says", "carol": "Test this"} {
		got := s.kits[agent].prompts(want)
		if agent != "bob" && len(got) != 1 || len(got) == 0 {
			t.Errorf("%s was told %d times: %q", agent, len(got), got)
		}
		if n := s.do("ls", agent, "--all", "--count"); n != "1" {
			t.Errorf("%s has %s messages", agent, n)
		}
	}
	told := strings.Join(s.kits["carol"].prompts("Test this"), "")
	if !strings.Contains(told, "Do what this plan says") || !strings.Contains(told, "ünïque-7") {
		t.Errorf("what carol was told does not hold what bob has said: %q", told)
	}
}

// reviewer is what stands in the way of touch on the reviewer's PATH: the fake model knows one
// command, and so answers through its program's tool.
const reviewer = `#!/bin/sh
id=$(atm history bob --limit 1 | sed -n 's/.*  mail \([0-9a-f]*\)$/\1/p')
if [ -e reviewed ]; then atm reply "$id" "Approved."; else atm reply "$id" "The tests are missing."; fi
: >reviewed
`

// TestPair is the cookbook's pair: Codex writes, and Claude Code reviews, each with its own tool,
// which a rule in team.toml allows; the verdicts are real calls of atm reply out of a tool. Interrupted at
// the first verdict and run again it comes to the same end.
func TestPair(t *testing.T) {
	s := newCrew(t, map[string]string{"alice": "codex", "bob": "claude"}, "[[rules]]\ntool = \"Bash(touch *)\"\ndecision = \"allow\"\n")
	if err := os.WriteFile(filepath.Join(s.kits["bob"].dir, "bin", "touch"), []byte(reviewer), 0o755); err != nil {
		t.Fatal(err)
	}
	verdicts := func() int { return strings.Count(s.do("ls", "script", "--all"), " bob ") }
	s.recipe([]string{"pair.sh", "file", "DOTOOL the file"}, "the first verdict", func() bool { return verdicts() > 0 }, "approved in round 2\n")
	if !s.kits["alice"].isMade() {
		t.Error("the writer has written nothing")
	}
	if n := verdicts(); n != 2 {
		t.Errorf("%d verdicts", n)
	}
	for agent := range s.kits {
		if n := s.do("ls", agent, "--all", "--count"); n != "2" {
			t.Errorf("%s has %s messages, not 2", agent, n)
		}
	}
}
