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

// The packages can be used from another module: the example starts an agent, asks it, confirms what it
// asks, looks, interrupts, types and stops it.
func TestManagerExample(t *testing.T) {
	bin := t.TempDir()
	for dir, pkg := range map[string]string{"..": "./internal/testagent/cmd/fakeagent", "manager": "."} {
		build := exec.Command("go", "build", "-ldflags=-w", "-o", bin+"/", pkg)
		build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0") // as most tests build what they run
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build %s in %s: %v\n%s", pkg, dir, err, out)
		}
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"plain", "sh"}, []string{`: "hello"`, "typed: typed", "bob has ended"}},
		{
			[]string{"-ask", "CONFIRM [touch x]", "claude", filepath.Join(bin, "fakeagent")},
			[]string{"bob: confirming", "confirmed: ", "All done.", "typed: typed", "bob has ended"},
		},
	} {
		run := exec.Command(filepath.Join(bin, "manager"), c.args...)
		run.Dir = bin
		out, err := run.CombinedOutput()
		if err != nil {
			t.Errorf("manager %s: %v", c.args, err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("manager %s does not print %q:\n%s", c.args, want, out)
			}
		}
	}
}
