//go:build race

package lockfile

import "testing"

// Nobody reads a log, or walks a mailbox, while it holds the lock for which all members of a team wait.
func TestNothingIsReadUnderTheLockTeam(t *testing.T) {
	d, _ := team(t)
	panics := func() (does bool) {
		defer func() { does = recover() != nil }()
		Reads("read a log")
		return false
	}
	mustTry(t, d, "bob.events", Exclusive)
	if panics() {
		t.Error("under the lock of a log")
	}
	mustTry(t, d, "team", Exclusive)
	if !panics() {
		t.Error("it may read under the lock team")
	}
}
