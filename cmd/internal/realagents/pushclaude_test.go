//go:build linux

package realagents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What Claude Code does beside TestByHand: it watches its inbox, says itself what it does, and in bypass mode is sent
// nothing that it would hold back.
func TestPushClaude(t *testing.T) {
	for _, isNewest := range []bool{false, true} {
		for name, do := range map[string]func(*byHand){
			"drop":      (*byHand).dropWakes,
			"interrupt": (*byHand).mailAfterInterrupt,
			"bypass":    (*byHand).mailInBypassMode,
		} {
			t.Run(nameOf("claude", isNewest)+"/"+name, func(t *testing.T) { do(newByHand(t, "claude", isNewest)) })
		}
	}
}

// drop puts a file into bob's inbox, as a person or another program does.
func (s *byHand) drop(text string) {
	s.t.Helper()
	inbox := filepath.Join(s.dir, ".atm", "main", "bob", "inbox")
	if err := os.WriteFile(filepath.Join(inbox, "note.txt"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// dropGets waits until the model has a dropped text, once.
func (s *byHand) dropGets(bob *window, text string) {
	s.t.Helper()
	s.wait("the model to get "+text, func() bool { return s.gets(text) > 0 })
	bob.waitsFor("idle")
	s.wait("it to count as read", func() bool { return s.unread("bob") == 0 })
	if n := s.gets(text); n != 1 {
		s.t.Errorf("the model got %q %d times", text, n)
	}
}

// No command of atm's has to run.
func (s *byHand) dropWakes() {
	bob := s.talks("bob")
	check := bob.halfLine()
	s.drop("note by hand")
	s.dropGets(bob, "note by hand")
	check()
}

// No hook tells of an interrupt: the session's file does. What came in the turn comes after it.
func (s *byHand) mailAfterInterrupt() {
	bob := s.talks("bob")
	interrupt := func() {
		bob.keys("\x1b")
		s.wait("atm to say that bob is idle", func() bool { return s.stateOf("bob") == "idle" })
	}
	bob.says("DOSLOW")
	s.wait("the turn", func() bool { return s.stateOf("bob") == "busy" && len(s.prompts("DOSLOW")) > 0 })
	interrupt()
	bob.keys("\x15") // the prompt is in the box again
	s.wait("the box to be empty", func() bool { r, _ := bob.now(); return !r.HasDraft })
	bob.says("DOSLOW again")
	s.wait("the next turn", func() bool { return s.stateOf("bob") == "busy" && len(s.prompts("DOSLOW again")) > 0 })
	s.drop("note for later")
	bob.keys("\x1b")
	s.dropGets(bob, "note for later")
}

func (s *byHand) mailInBypassMode() {
	s.changeRun(`REAL_AGENTS_DIR="$dir" `, `REAL_AGENTS_DIR="$dir" IS_SANDBOX=1 `) // root may not, else
	bob := s.open("bob", "--permission-mode", "bypassPermissions", "--settings", `{"skipDangerousModePermissionPrompt":true}`)
	bob.says("hello")
	bob.waitsFor("idle")
	s.gotOnce(bob, s.send("note one without questions"), "note one without questions")
	s.do("install", "claude", "--accept")
	s.gotOnce(bob, s.send("note two without questions"), "note two without questions")
	if strings.Contains(ran[s.kit.dir], newest["claude"][1:]) && !strings.Contains(s.do("status", "bob"), "inbox socket") {
		s.t.Errorf("it does not take what is sent:\n%s", s.do("status", "bob"))
	}
}
