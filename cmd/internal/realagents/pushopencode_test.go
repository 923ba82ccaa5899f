//go:build linux

package realagents

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What opencode does beside TestByHand: its plugin has mail before there is a conversation, keeps to the person's mode,
// and has its questions answered from elsewhere.
func TestPushOpencode(t *testing.T) {
	for name, do := range map[string]func(*byHand){
		"before the first prompt": (*byHand).mailMakesConversation,
		"plan mode":               (*byHand).mailKeepsMode,
		"questions":               (*byHand).questionsFromElsewhere,
		"shell":                   (*byHand).shellIsNotTheAgent,
		"killed before an answer": (*byHand).mailBeforeAnAnswer,
	} {
		t.Run(name, func(t *testing.T) { do(newByHand(t, "opencode", false)) })
	}
}

// The conversation that mail begins is shown, and the half-written line is still in the box.
func (s *byHand) mailMakesConversation() {
	bob := s.open("bob")
	check := bob.halfLine()
	s.gotOnce(bob, s.send("note before all"), "note before all")
	bob.waitsForText("note before all")
	check()
	s.gotOnce(bob, s.send("note to go on"), "note to go on")
	bob.waitsForText("note to go on")
}

// In the mode plan, which forbids changes, the answer to mail is made in it as well.
func (s *byHand) mailKeepsMode() {
	bob := s.open("bob", "--agent", "plan")
	bob.says("hello")
	bob.waitsFor("idle")
	s.gotOnce(bob, s.send("note for a plan"), "note for a plan")
	bob.waitsForText("note for a plan")
	isBuild := func(line string) bool { return strings.Contains(line, "Build ·") }
	if lines := bob.lines(); slices.ContainsFunc(lines, isBuild) {
		s.t.Errorf("it left the mode plan:\n%s", strings.Join(lines, "\n"))
	}
}

// What the agent runs in its shell is known for its own, and its hooks report nothing.
func (s *byHand) shellIsNotTheAgent() {
	bob := s.talks("bob")
	const script = `echo '{"type":"session.created","properties":{"sessionID":"inner"}}' | atm hook opencode; echo $ATM_SHELL_OF >made.txt`
	if err := os.WriteFile(filepath.Join(s.dir, "inner.sh"), []byte(script), 0o644); err != nil {
		s.t.Fatal(err)
	}
	bob.says("DORUN sh inner.sh")
	bob.approve()
	s.wait("the command to have run", s.isMade)
	bob.waitsFor("idle")
	if out, _ := os.ReadFile(s.made()); string(out) != "bob\n" {
		s.t.Errorf("it is the shell of %q", out)
	}
	if events := s.do("events", "bob", "--json", "--limit", "0"); strings.Contains(events, `"session":"inner"`) {
		s.t.Errorf("its hook was believed:\n%s", events)
	}
}

func (s *byHand) questionsFromElsewhere() {
	bob := s.talks("bob")
	made := filepath.Join(s.kit.dir, "work", "made.txt")
	asks := func(n int) {
		s.t.Helper()
		os.Remove(made)
		bob.says("DOTOOL" + strings.Repeat(" again", n))
		bob.waitsFor("blocked")
		s.wait("the question to be served", func() bool { return strings.Contains(s.do("pending"), "once Allow once") })
	}
	goesOn := func() {
		s.t.Helper()
		bob.waitsFor("idle")
		s.wait("nobody to wait for an answer", func() bool { return !strings.Contains(s.leftovers(), "atm hook opencode") })
		if out := s.do("pending"); !strings.Contains(out, "nothing") {
			s.t.Errorf("atm pending: %s", out)
		}
	}
	asks(0)
	s.do("approve", "bob", "--as", "lead")
	s.wait("the command to have run", s.isMade)
	goesOn()
	asks(1)
	s.do("reject", "bob", "--reason", "not while I look", "--as", "lead")
	s.wait("the model to get the reason", func() bool { return s.gets("lead says no: not while I look") > 0 })
	goesOn()
	if s.isMade() {
		s.t.Error("the command ran that was denied")
	}
	asks(2)
	bob.approve()
	s.wait("the command to have run", s.isMade)
	goesOn()
}

// What a program was given, and is killed before its model has answered, comes again.
func (s *byHand) mailBeforeAnAnswer() {
	const body = "note without an answer"
	asked, goesOn := make(chan bool, 1), make(chan bool)
	own := s.standBefore(func(_ *http.Request, said any) func(int, string) {
		var b strings.Builder
		if writeStrings(&b, said); strings.Contains(b.String(), body) {
			select {
			case asked <- true:
			default:
			}
			<-goesOn
		}
		return nil
	})
	if err := os.WriteFile(filepath.Join(s.kit.dir, "port"), []byte(own+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	bob := s.talks("bob")
	s.send(body)
	s.wait("the model to be asked", func() bool { return len(asked) > 0 })
	time.Sleep(2 * time.Second) // in which it would count as read
	bob.kill()
	close(goesOn)
	s.open("bob")
	s.wait("it to come again", func() bool { return len(s.prompts(body)) > 0 })
	if got := s.prompts(body); len(got) != 1 || !strings.Contains(got[0], "may be a repeat") {
		s.t.Errorf("the model got %q", got)
	}
}
