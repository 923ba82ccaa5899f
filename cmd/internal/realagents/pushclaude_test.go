//go:build linux

package realagents

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/agents"
)

// What Claude Code does beside TestByHand: it says itself what it does, and in bypass mode is sent
// nothing that it would hold back.
func TestPushClaude(t *testing.T) {
	for _, isNewest := range []bool{false, true} {
		for name, do := range map[string]func(*byHand){
			"interrupt": (*byHand).mailAfterInterrupt,
			"bypass":    (*byHand).mailInBypassMode,
		} {
			t.Run(nameOf("claude", isNewest)+"/"+name, func(t *testing.T) { do(newByHand(t, "claude", isNewest)) })
		}
	}
}

// No hook tells of an interrupt: the session's file does.
func (s *byHand) mailAfterInterrupt() {
	bob := s.talks("bob")
	bob.says("DOSLOW")
	s.wait("the turn", func() bool { return s.stateOf("bob") == "busy" && len(s.prompts("DOSLOW")) > 0 })
	bob.keys("\x1b")
	s.wait("atm to say that bob is idle", func() bool { return s.stateOf("bob") == "idle" })
	bob.keys("\x15") // the prompt is in the box again
	s.wait("the box to be empty", func() bool { r, _ := bob.now(); return r.Draft == "" })
	s.cannot = !s.canGet(agents.AtIdle)
	s.gotOnce(bob, s.send("note for later"), "note for later")
}

// Without --accept the mail would be held there, and it comes with the next prompt.
func (s *byHand) mailInBypassMode() {
	s.changeRun(`REAL_AGENTS_DIR="$dir" `, `REAL_AGENTS_DIR="$dir" IS_SANDBOX=1 `) // root may not, else
	bob := s.open("bob", "--permission-mode", "bypassPermissions", "--settings", `{"skipDangerousModePermissionPrompt":true}`)
	bob.says("hello")
	bob.waitsFor("idle")
	s.cannot = true
	s.gotOnce(bob, s.send("note one without questions"), "note one without questions")
	s.install(s.kit, "--accept")
	s.gotOnce(bob, s.send("note two without questions"), "note two without questions")
	if strings.Contains(ran[s.kit.dir], newest["claude"][1:]) && !strings.Contains(s.do("status", "bob"), "inbox socket") {
		s.t.Errorf("it does not take what is sent:\n%s", s.do("status", "bob"))
	}
}
