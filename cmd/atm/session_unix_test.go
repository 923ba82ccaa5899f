//go:build linux || darwin

package main

import (
	"strings"
	"syscall"
	"testing"
)

// A session in a terminal: what the agent emits stands above what is being typed,
// which is not lost.
func TestSessionInATerminal(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.atm(0, "team", "add", "me")
	id := strings.TrimSpace(s.atm(0, "session", "new", "--agent", "bob", "--quiet"))
	s.atm(0, "event", "agent_output", "stream=std_out", "content=Said while nobody was there: 世界\x1b[2J", "--as", "bob")
	w := s.open(false, "session", "attach", "bob", "--as", "me")
	w.shows("bob: Said while nobody was there: 世界")
	if strings.Contains(w.String(), "\x1b[2J") {
		t.Error("what an agent says steers the terminal")
	}
	w.types("half a li")
	w.shows("> half a li")
	s.atm(0, "event", "draft_ready", "draft_id=6f1c2a34-0b7e-4c1d-9a55-0123456789ab", "summary=Part one", "artifact_count=2", "--as", "bob")
	w.shows("Draft ready: 6f1c2a34-0b7e-4c1d-9a55-0123456789ab")
	w.types("ne\r")
	w.shows("human: half a line")
	w.types("taken back\x03")
	w.ends(0)
	if got := s.atm(0, "session", "show", id); strings.Contains(got, "taken back") {
		t.Errorf("sent: %s", got)
	}
}

// It ends with a signal, with Ctrl-D, and when the session is over.
func TestSessionInATerminalEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.atm(0, "session", "new", "--agent", "bob")
	w := s.open(false, "session", "attach", "bob", "--as", "alice")
	w.shows("Ctrl-D leaves")
	w.types("never sent")
	w.shows("never sent")
	w.command.Process.Signal(syscall.SIGTERM)
	w.ends(130)
	w = s.open(false, "session", "attach", "bob", "--as", "alice")
	w.shows("Ctrl-D leaves")
	w.types("\x04")
	w.ends(0)
	w = s.open(false, "session", "attach", "bob", "--as", "alice")
	w.shows("Ctrl-D leaves")
	s.atm(0, "session", "abort", "bob", "--as", "alice")
	w.shows("Session aborted by alice")
	w.ends(0)
}
