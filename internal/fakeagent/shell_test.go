//go:build unix

package fakeagent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/ptyrun/screen"
)

// atPrompt says whether the shell waits: bracketed paste is on.
func atPrompt(s *screen.Screen) bool {
	x, y := s.Cursor()
	return s.Modes().Paste && x == 2 && strings.HasPrefix(s.Line(y), "$")
}

func TestShell(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Profile: "plain"})
	r.until("prompt", atPrompt)
	r.keys("echo hello\r")
	r.sees("\nhello\n$")
	r.until("prompt", atPrompt)

	// A program runs in the foreground, by its name; Ctrl-C ends it.
	r.keys("cat\r")
	r.state("tool_running")
	r.keys("to the program\n")
	r.until("its echo", func(s *screen.Screen) bool {
		return strings.Count(strings.Join(s.Lines(), "\n"), "to the program") == 2
	})
	r.keys("\x03")
	r.until("prompt", atPrompt)
	if got := r.logged(TurnOver).Of(TurnOver); got[1].Code != 130 {
		t.Errorf("status %d", got[1].Code)
	}

	// Several lines are pasted as one, and run as several.
	r.keys("\x1b[200~echo one\necho two\x1b[201~")
	r.sees("echo two")
	r.keys("\r")
	r.sees("\none\ntwo\n$")
	r.keys("THINK 60s\r")
	r.state("tool_running")
	r.keys("\x03")
	r.until("prompt", atPrompt)
	r.keys("CONFIRM it\r")
	r.sees("Proceed? [y/N]")
	r.keys("y\n")
	if got := r.logged(Answered).Of(Answered)[0].Option; got != "y" {
		t.Errorf("answer %q", got)
	}
	r.until("prompt", atPrompt)
	r.keys("nosuch\r")
	r.sees("nosuch: command not found")
	r.until("prompt", atPrompt)
	r.keys("draft\x03")
	r.until("prompt", atPrompt)
	r.keys("exit 4\r")
	if code := r.ends(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	want := []string{"echo hello", "cat", "echo one", "echo two", "THINK 60s", "CONFIRM it", "nosuch", "exit 4"}
	if diff := cmp.Diff(want, r.logged(Exited).Texts(Submitted)); diff != "" {
		t.Error(diff)
	}
}

// Without bracketed paste each line of a paste runs; what smuggles an end mark
// gets out of the paste.
func TestShellPaste(t *testing.T) {
	t.Parallel()
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Profile: "plain", Paste: "off", Marks: true})
		r.sees("$")
		r.keys("echo one\recho two\r")
		r.sees("\none\n", "\ntwo\n")
		if r.modes().Paste || !r.wrote("\x1b]133;C\x07") {
			t.Error("modes and marks")
		}
	})
	t.Run("smuggled", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Profile: "plain"})
		r.until("prompt", atPrompt)
		r.keys("\x1b[200~x \x1b[201~; echo SMUGGLED\r")
		r.sees("\nSMUGGLED\n")
	})
}
