//go:build unix

// Package examples runs the examples, which are modules of their own.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The packages can be used from another module, in few lines: an agent is started, asked, answered and looked at.
func TestExamples(t *testing.T) {
	bin := t.TempDir()
	for dir, pkg := range map[string]string{"..": "./internal/testagent/cmd/fakeagent", "manager": ".", "acp": ".", "alone": ".", "team": ".", "day": "."} {
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-w", "-o", bin+"/", pkg)
		build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0") // as most tests build what they run
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build %s in %s: %v\n%s", pkg, dir, err, out)
		}
		most := 46
		if dir == "day" {
			most = 120
		}
		if source, err := os.ReadFile(filepath.Join(dir, "main.go")); dir != ".." && (err != nil || lines(string(source)) > most) {
			t.Errorf("%s/main.go has %d lines of code (%v), more than %d", dir, lines(string(source)), err, most)
		}
	}
	if err := os.Symlink("fakeagent", filepath.Join(bin, "claude")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want []string }{
		{[]string{"alone", t.TempDir()}, []string{"alice@main says Go on.\n", "bob is busy\n"}},
		{[]string{"manager", "echo hello", "bash", "--norc"}, []string{"turn_completed", "\nhello\n"}},
		{[]string{"manager", "CONFIRM [touch x]", filepath.Join(bin, "claude")}, []string{"confirm_required", "turn_completed", "All done."}},
		{[]string{"team", filepath.Join(bin, "t", "main"), "hello", filepath.Join(bin, "fakeagent"), "acp"}, []string{"completed [[", "\nread 2", "\nturn_done 2"}},
		{[]string{"day", filepath.Join(bin, "d", "main"), filepath.Join(bin, "fakeagent"), "acp"}, []string{
			"sent to 2\nbob reads: Good morning.\nbob answers: Yes, all green.\nthe job is done\n", "alice wants to run: make test\n", "alice is completed\n", "bob unknown 0 unread\n",
		}},
		{[]string{"acp", "CONFIRM [touch x]", filepath.Join(bin, "fakeagent"), "acp"}, []string{"[execute: touch x: yes]", "CONFIRM: once", "[completed ]"}},
	} {
		run := exec.Command(filepath.Join(bin, c.args[0]), c.args[1:]...)
		run.Dir, run.Env = bin, append(os.Environ(), "PS1=$ ")
		out, err := run.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q does not print %q:\n%s", c.args, want, out)
			}
		}
	}
}

// lines counts the lines of a program that are neither empty nor a comment.
func lines(source string) (n int) {
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
