package install

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestWhoseCommand(t *testing.T) {
	for line, want := range map[string]whose{
		"atm hook claude":                        mine,
		"  /usr/bin/atm  hook   claude ":         mine,
		"'/a b/atm' hook claude":                 mine,
		`/a\ b/atm hook claude`:                  mine,
		`"C:/Program Files/atm.exe" hook claude`: mine,
		"atm hook claude --as bob":               mine,
		"atm hook claude --root /r":              adjusted,
		"env X=1 atm hook claude":                adjusted,
		"ATM_AGENT=b atm hook claude":            adjusted,
		"atm hook claude || true":                adjusted,
		"cd x && /y/atm hook claude":             adjusted,
		"atm hook codex":                         foreign,
		"batm hook claude":                       foreign,
		"atm send bob 'hook claude'":             foreign,
		"hook claude atm":                        foreign,
		"echo 'unclosed":                         foreign,
		"":                                       foreign,
	} {
		if got := judge(line, nil, "claude"); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
	for _, words := range [][]string{{"atm", "hook"}, {"/a b/atm", "it's", "", "$x"}, {`a\b`}} {
		line := shellLine(words)
		got, ok := shellWords(line)
		if !ok || !slices.Equal(got, words) {
			t.Errorf("%q is %q again, %v", line, got, ok)
		}
		if out, err := exec.Command("sh", "-c", "printf '%s\\0' "+line).Output(); err == nil {
			if want := strings.Join(words, "\x00") + "\x00"; string(out) != want {
				t.Errorf("a shell reads %q as %q", line, out)
			}
		}
	}
}
