//go:build linux || darwin

package main

import "testing"

// The team on a terminal: what comes to be waiting is shown below it and rings; q
// leaves.
func TestTeamWatchRings(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	w := s.open(false, "team", "--watch", "--as", "alice")
	w.shows("never seen")
	s.atm(0, "send", "alice", "hello", "--as", "bob")
	w.shows("\a\x1b]9;atm: 1 unread\x1b\\")
	w.shows("1 unread   atm read --as alice")
	s.atm(0, "event", "confirm_required", "prompt=rm -rf build", "tool=Bash", "--as", "bob")
	w.shows("\x1b]777;notify;bob asks;bob asks: rm -rf build\x1b\\")
	w.types("q")
	w.ends(0)
}
