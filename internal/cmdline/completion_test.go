package cmdline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := mail(new([]string)).Completion(shell)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"send", "team add", "--subject", "--lock-timeout", "--kind"} {
			if !strings.Contains(script, want) {
				t.Errorf("%s: no %s", shell, want)
			}
		}
		if strings.Contains(script, "inbox") || strings.Contains(script, "@") && !strings.Contains(script, "$@") || lines(script) > 120 {
			t.Errorf("%s:\n%s", shell, script)
		}
		binary, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(binary, "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s -n: %v\n%s", shell, err, out)
		}
	}
	if _, err := mail(new([]string)).Completion("tcsh"); err == nil || err.(*Error).Exit != ExitUsage {
		t.Errorf("tcsh: %v", err)
	}
}

// completions are lines as typed so far, and the words offered for the last.
var completions = []struct{ line, want string }{
	{"se", "send session"},
	{"--as team re", "read"},
	{"send --u", "--urgent"},
	{"send bob --at", "--attach"},
	{"send --as x --", "--message --attach --meta --subject --urgent --ack --fyi --expires --root --team --as --lock-timeout --json --quiet --help"},
	{"read -n --p", ""}, // the value of -n
	{"team ", "ls add"},
	{"team add --k", "--kind"},
	{"where --", "--root --team --as --lock-timeout --json --quiet --help"},
	{"help te", "team"},
}

func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	script, err := mail(new([]string)).Completion("bash")
	if err != nil {
		t.Fatal(err)
	}
	const ask = "\nCOMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)) COMPREPLY=(); _atm; echo \"${COMPREPLY[*]}\"\n"
	for _, test := range append(completions, struct{ line, want string }{"--as = team re", "read"}) {
		words := append([]string{"-c", script + ask, "bash", "atm"}, strings.Split(test.line, " ")...)
		out, err := exec.Command(bash, words...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); got != test.want || err != nil {
			t.Errorf("atm %s: %q %v, want %q", test.line, got, err, test.want)
		}
	}
}

func TestFishCompletes(t *testing.T) {
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip(err)
	}
	script, err := mail(new([]string)).Completion("fish")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range completions {
		if test.want == "" {
			continue // files
		}
		cmd := exec.Command(fish, "-N", "-c", script+"\ncomplete -C 'atm "+test.line+"'")
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		got := map[string]bool{}
		for _, word := range strings.Fields(string(out)) {
			got[word] = true
		}
		for _, want := range strings.Fields(test.want) {
			if !got[want] {
				t.Errorf("atm %s: %q %v, want %q", test.line, out, err, want)
			}
		}
		if len(got) != len(strings.Fields(test.want)) {
			t.Errorf("atm %s: %q, want %q", test.line, out, test.want)
		}
	}
}
