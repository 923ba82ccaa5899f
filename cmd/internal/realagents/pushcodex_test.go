//go:build linux

package realagents

import (
	"testing"
	"time"
)

// What Codex does beside TestByHand: what is urgent goes into the turn, what waits behind a turn that its person ends begins
// with the next message, and nothing is given to a thread whose terminal is gone.
func TestPushCodex(t *testing.T) {
	for name, do := range map[string]func(*byHand){
		"urgent":      (*byHand).urgentMail,
		"escape":      (*byHand).mailAfterEscape,
		"person left": (*byHand).personHasLeft,
		"failed turn": (*byHand).turnFails,
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
	bob.says("DOSLOW")
	bob.waitsFor("busy")
	before := s.send("note behind a turn")
	bob.keys("\x1b")
	bob.waitsFor("idle")
	s.gotOnce(bob, s.send("note that goes on"), "note that goes on")
	s.gotOnce(bob, before, "note behind a turn")
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
	bob = s.resume("bob")
	s.hasBegun()
	s.gotOnce(bob, id, "note for nobody")
}

// A turn that fails calls no hook: who looks sees it. At its usage limit Codex gets nothing.
func (s *byHand) turnFails() {
	bob := s.talks("bob")
	bob.says("DOLIMIT")
	s.wait("the limit", func() bool { return s.stateOf("bob") == "limited" })
	s.send("note at the limit")
	time.Sleep(2 * time.Second) // it would be there within one
	if s.gets("note at the limit") > 0 {
		s.t.Error("it was given a message that fails")
	}
}
