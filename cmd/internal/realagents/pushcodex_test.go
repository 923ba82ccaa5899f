//go:build linux

package realagents

import (
	"strings"
	"testing"
	"time"
)

// What Codex does beside TestByHand: what is urgent goes into the turn, nothing is given to a thread whose terminal is
// gone, and a server that comes back has its mail again.
func TestPushCodex(t *testing.T) {
	for name, do := range map[string]func(*byHand){
		"urgent":         (*byHand).urgentMail,
		"escape":         (*byHand).mailAfterEscape,
		"person left":    (*byHand).personHasLeft,
		"server is back": (*byHand).serverIsBack,
	} {
		for _, isNewest := range []bool{false, true} {
			t.Run(nameOf("codex", isNewest)+"/"+name, func(t *testing.T) { do(newByHand(t, "codex", isNewest)) })
		}
	}
}

func (s *byHand) urgentMail() {
	bob := s.talks("bob")
	bob.says("DOSLEEP")
	bob.approve()
	bob.waitsFor("busy")
	check := bob.halfLine()
	id := s.send("note in a hurry", "--urgent")
	s.wait("the message to be in the server", func() bool { return s.has(id, "announced") })
	s.gotOnce(bob, id, "note in a hurry")
	check()
	if len(s.prompts("note in a hurry")) > 0 && s.turns() > 2 {
		s.t.Error("it began a turn")
	}
}

// After a turn that a person has ended the server's queue would wait for the next one.
func (s *byHand) mailAfterEscape() {
	bob := s.talks("bob")
	bob.says("DOSLOW")
	bob.waitsFor("busy")
	bob.keys("\x1b")
	bob.waitsFor("idle")
	s.gotOnce(bob, s.send("note after Escape"), "note after Escape")
}

// The server keeps the thread for a minute.
func (s *byHand) personHasLeft() {
	bob := s.talks("bob")
	bob.leave()
	id := s.send("note for nobody")
	time.Sleep(20 * time.Second) // it would be there within one; the server takes a minute, as long as a wait may
	s.wait("the conversation to end", func() bool { return s.hasEvent("bob", "session_end") })
	if s.gets("note for nobody") > 0 || s.has(id, "read") {
		s.t.Error("a thread got it that nobody sees")
	}
	s.wait("the follower to end", func() bool { return !strings.Contains(s.leftovers(), "atm-more codex") })
	bob = s.resume("bob")
	s.hasBegun()
	s.gotOnce(bob, id, "note for nobody")
}

// A terminal whose server was killed waits for the next one, which another terminal starts, and goes on with its thread.
func (s *byHand) serverIsBack() {
	bob := s.talks("bob")
	if s.endProcesses("app-server --listen") == 0 {
		s.t.Fatal("Codex has no server:\n", s.leftovers())
	}
	id := s.send("note while it is away")
	s.open("bob")
	s.gotOnce(bob, id, "note while it is away")
	s.gotOnce(bob, s.send("note with the new server"), "note with the new server")
}
