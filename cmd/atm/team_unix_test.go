//go:build linux || darwin

package main

import "testing"

// The team on a terminal is repainted; q leaves.
func TestTeamWatch(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	w := s.open(false, "team", "--watch", "--as", "alice")
	w.shows("never seen")
	s.atm(0, "send", "alice", "hello", "--as", "bob")
	w.shows("1 unread")
	w.types("q")
	w.ends(0)
}

// So is what waits for a person; into a pipe each comes once (testdata/script/pending.txtar).
func TestPendingWatch(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	w := s.open(false, "pending", "--watch", "--as", "alice")
	w.shows("nothing is waiting for you")
	s.atm(0, "event", "waiting_for_input", "prompt=Which branch?", "--as", "bob")
	w.shows("Which branch?")
	w.shows("\a\x1b]9;")
	w.types("q")
	w.ends(0)
}
