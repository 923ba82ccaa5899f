//go:build linux

package realagents

import (
	"strings"
	"testing"
)

// Mail for a Claude Code that holds messages back is typed; for any other that has an inbox it goes there, and an interrupt
// leaves nothing of it in the box, where a person's words would stand behind it.
func TestInbox(t *testing.T) {
	t.Run("bypass", func(t *testing.T) {
		s := newBob(t, "claude").in(t)
		s.changeRun(`REAL_AGENTS_DIR="$dir"`, `REAL_AGENTS_DIR="$dir" IS_SANDBOX=1`) // else it refuses that mode to root
		s.args = []string{"--dangerously-skip-permissions"}
		s.start()
		s.wait("the warning", func() bool { return strings.Contains(s.do("screen", "bob"), "Yes, I accept") })
		s.chooseBelow("Yes, I accept")
		s.idle()
		s.getsOnce(s.send("ECHO one"), "ECHO one")
		if s.isPushed() {
			t.Error("it is pushed to")
		}
		s.stop()
	})
	t.Run("interrupt", func(t *testing.T) {
		s := newBob(t, "claude").in(t)
		s.run()
		s.getsOnce(s.send("ECHO one"), "ECHO one")
		s.idle()
		if !s.isPushed() {
			t.Skip("this version has no inbox")
		}
		s.slowly("until somebody says stop")
		s.do("interrupt", "bob")
		s.wait("the end of the answer", func() bool { return s.hungUp("until somebody says stop") })
		s.idle()
		if n := strings.Count(s.do("events", "bob"), "turn_started"); n != 2 {
			t.Errorf("two messages began %d turns", n)
		}
		s.do("type", "bob", "mine", "--enter")
		s.wait("the person's words", func() bool { return len(s.prompts("mine")) > 0 })
		if got := s.prompts("mine"); strings.TrimSpace(got[0]) != "mine" {
			t.Errorf("the model got %q", got)
		}
		s.stop()
	})
}

// Mail for a Codex that has a server of its own goes there, from the first message on, beside what is half written. When a
// person begins another conversation mail goes there.
func TestServerQueue(t *testing.T) {
	for _, isNewest := range []bool{false, true} {
		t.Run(nameOf("codex", isNewest), func(t *testing.T) {
			s := newVersion(t, "codex", isNewest).in(t)
			s.run()
			s.wait("the server to take mail", s.isPushed)
			s.getsOnce(s.send("ECHO one"), "ECHO one")
			s.idle()
			s.draft()
			s.idle()
			if !s.isPushed() {
				t.Error("it is not pushed to")
			}
			s.do("type", "bob", "/new", "--enter")
			s.wait("another conversation", func() bool { return !strings.Contains(s.do("screen", "bob"), "ECHO") })
			id := s.send("ECHO two")
			s.wait("the message", func() bool { return s.has(id, "turn_done") })
			s.wait("the server to take mail", s.isPushed)
			if len(s.prompts(id)) != 1 || !strings.Contains(s.do("screen", "bob"), id) {
				t.Errorf("the model got %q", s.prompts(id))
			}
			s.idle()
			s.stop()
		})
	}
}
