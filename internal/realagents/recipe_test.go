//go:build linux

package realagents

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// crew is a team under atm up whose members are different programs.
type crew struct {
	*desk
	kits map[string]*kit // by member
}

// newCrew sets up a team in which members run programs, and script drives them.
func newCrew(t *testing.T, programs map[string]string) *crew {
	t.Helper()
	exe, err := built()
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{kits: map[string]*kit{}}
	names, toml := []string{"init", "script", "me"}, "[members.me]\nperson = true\n"
	for member, program := range programs {
		k := newKit(t, program, false)
		if c.desk == nil {
			c.desk = &desk{kit: k, atm: exe, dir: filepath.Join(k.dir, "team")}
		}
		if err := os.Symlink(exe, filepath.Join(k.dir, "bin", "atm")); err != nil {
			t.Fatal(err)
		}
		c.kits[member] = k
		names = append(names, member)
		toml += fmt.Sprintf("[members.%s]\ncommand = [%q, %q, %q]\ndriver = %q\n", member, filepath.Join(k.scripts, "run"), k.dir, program, program)
	}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c.do(names...)
	if err := os.WriteFile(filepath.Join(c.dir, ".atm", "main", "team.toml"), []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// recipe starts a script of the cookbook.
func (c *crew) recipe(name string, args ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	c.t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "docs", "cookbook", name))
	if err != nil {
		c.t.Fatal(err)
	}
	cmd, out, errs = exec.Command("sh", append([]string{path}, args...)...), new(bytes.Buffer), new(bytes.Buffer)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, errs
	cmd.Env = []string{
		"HOME=" + c.kit.dir, "PATH=" + filepath.Dir(c.atm) + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=xterm-256color", "LIMIT=3m",
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd, out, errs
}

// gone waits until nothing that any of the programs has started runs.
func (c *crew) gone(when string) {
	c.t.Helper()
	for member, k := range c.kits {
		c.wait(member+"'s processes to be gone "+when, func() bool { return k.leftovers() == "" })
	}
}

// TestPipeline is the cookbook's pipeline with Claude Code and Codex at its
// stages: what the one has said is what the other is told. Killed while Codex is at work,
// the script leaves nothing running; run again it sends nothing twice, and
// Claude Code, which had answered, is not asked again.
func TestPipeline(t *testing.T) {
	c := newCrew(t, map[string]string{"alice": "claude", "bob": "codex", "carol": "claude"})
	defer c.tellAll(t)
	const task = "ECHO ünïque-7: a cache, please"
	cmd, out, errs := c.recipe("pipeline.sh", "cache", task)
	c.wait("bob to be told the plan", func() bool { return len(c.kits["bob"].prompts("Do what this plan says")) > 0 })
	cmd.Process.Kill()
	cmd.Wait()
	c.gone("after a kill")
	t.Logf("killed: %s%s", out, errs)

	for run := range 2 {
		cmd, out, errs = c.recipe("pipeline.sh", "cache", task)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("run %d: %v\n%s%s", run+1, err, out, errs)
		}
		t.Logf("run %d: %s%s", run+1, out, errs)
		if !strings.Contains(out.String(), "ünïque-7") {
			t.Errorf("run %d: the report is %q", run+1, out)
		}
		c.gone("after the end")
	}
	for member, want := range map[string]string{"alice": "Plan this", "bob": "Do what this plan says", "carol": "Test this"} {
		got := c.kits[member].prompts(want)
		if member != "bob" && len(got) != 1 || len(got) == 0 {
			t.Errorf("%s was told %d times: %q", member, len(got), got)
		}
		if n := c.do("ls", member, "--all", "--count"); n != "1" {
			t.Errorf("%s has %s messages", member, n)
		}
	}
	if got := strings.Join(c.kits["carol"].prompts("Test this"), ""); !strings.Contains(got, "Do what this plan says") || !strings.Contains(got, "ünïque-7") {
		t.Errorf("what carol was told does not hold what bob has said: %q", got)
	}
}

// reviewer is what stands in the way of touch on the reviewer's PATH: the fake
// model knows one command, and so answers through its program's tool.
const reviewer = `#!/bin/sh
id=$(atm history bob --limit 1 | sed -n 's/.*  mail \([0-9a-f]*\)$/\1/p')
if [ -e reviewed ]; then atm reply "$id" "Approved."; else atm reply "$id" "The tests are missing."; fi
: >reviewed
`

// TestPair is the cookbook's pair: Codex writes, and Claude Code reviews, each
// with its own tool, which a rule in team.toml allows; the verdicts are real
// calls of atm reply out of a tool. Killed at the first verdict and run again it
// comes to the same end.
func TestPair(t *testing.T) {
	c := newCrew(t, map[string]string{"alice": "codex", "bob": "claude"})
	defer c.tellAll(t)
	if err := os.WriteFile(filepath.Join(c.kits["bob"].dir, "bin", "touch"), []byte(reviewer), 0o755); err != nil {
		t.Fatal(err)
	}
	rules, err := os.OpenFile(filepath.Join(c.dir, ".atm", "main", "team.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rules.WriteString("[[rules]]\ntool = \"Bash(touch *)\"\ndecision = \"allow\"\n"); err != nil {
		t.Fatal(err)
	}
	rules.Close()

	const task = "DOTOOL the file"
	verdicts := func() int { return strings.Count(c.do("ls", "script", "--all"), " bob ") }
	cmd, out, errs := c.recipe("pair.sh", "file", task)
	c.wait("the first verdict", func() bool { return verdicts() > 0 })
	cmd.Process.Kill()
	cmd.Wait()
	c.gone("after a kill")
	t.Logf("killed: %s%s", out, errs)
	for run := range 2 {
		cmd, out, errs = c.recipe("pair.sh", "file", task)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("run %d: %v\n%s%s", run+1, err, out, errs)
		}
		t.Logf("run %d: %s%s", run+1, out, errs)
		if !strings.HasSuffix(out.String(), "approved in round 2\n") {
			t.Errorf("run %d: %q", run+1, out)
		}
		c.gone("after the end")
	}
	if !c.kits["alice"].made() {
		t.Error("the writer has written nothing")
	}
	if n := verdicts(); n != 2 {
		t.Errorf("%d verdicts", n)
	}
	for member, want := range map[string]string{"alice": "2", "bob": "2"} {
		if n := c.do("ls", member, "--all", "--count"); n != want {
			t.Errorf("%s has %s messages, not %s", member, n, want)
		}
	}
}

// tellAll shows where things stand when a test has failed.
func (c *crew) tellAll(t *testing.T) {
	if !t.Failed() {
		return
	}
	for member := range c.kits {
		screen, _ := c.try("screen", member)
		events, _ := c.try("events", member, "--limit", "30")
		t.Logf("%s:\n%s\n%s", member, screen, events)
	}
}
