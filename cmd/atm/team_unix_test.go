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
