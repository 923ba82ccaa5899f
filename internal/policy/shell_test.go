package policy

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Given an allowed line, a real shell runs only the allowed command.
func TestShellsAgree(t *testing.T) {
	t.Parallel()
	shells := slices.DeleteFunc([]string{"bash", "dash", "zsh"}, func(s string) bool { _, err := exec.LookPath(s); return err != nil })
	if len(shells) == 0 {
		t.Skip("there is no shell here to compare with")
	}
	rules := rulesOf("allow Bash(git *)")
	tokens := []string{"git ", "git a", " ", " ", ";", "&&", "||", "|", "&", "'", "'", `"`, `"`, `\`, "$", "(", ")", "`", "\n", "X", "X ", " X", "#", " #",
		"2>&1", ">/dev/null", "{", "}", "!", "=", "-", "\t", "$x", "*", "~", "[", "]"}
	r := rand.New(rand.NewPCG(1, 2))
	var allowed []string
	for len(allowed) < 250 {
		line := "git "
		for range 2 + r.IntN(12) {
			line += tokens[r.IntN(len(tokens))]
		}
		if strings.ContainsAny(line, "'\"\\;&|\n") && strings.Contains(line, "X") && rules.Decide(Request{Tool: "Bash", Input: line}) == Allow {
			allowed = append(allowed, line)
		}
	}
	for _, shell := range shells {
		path, _ := exec.LookPath(shell)
		for _, line := range allowed {
			// Only these two programs exist. A line with a syntax error runs nothing.
			c := exec.Command(path, "-c", fmt.Sprintf("git() { :; }\nX() { echo RAN; }\n%s\n", line))
			c.Env = []string{"PATH=/nowhere"}
			c.Dir = t.TempDir()
			if out, _ := c.Output(); len(out) > 0 {
				t.Errorf("%s, %q: %s", shell, line, out)
			}
		}
	}
	t.Logf("%d lines, %v", len(allowed), shells)
}
