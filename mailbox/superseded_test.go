package mailbox

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// What replaces what, also where nothing on disk tells.
func TestFlags(t *testing.T) {
	message := func(n int, from wire.Name, supersedes int) *Item {
		id := func(n int) wire.ID { return wire.ID(fmt.Sprintf("01900000-0000-7000-8000-%012d", n)) }
		m := &wire.Message{ID: id(n), From: wire.Address{Agent: from, Team: "main"}}
		if supersedes > 0 {
			m.Supersedes = id(supersedes)
		}
		return &Item{Message: m}
	}
	one, two, three := message(1, "alice", 0), message(2, "bob", 0), message(3, "alice", 1)
	behind := []*Item{message(4, "bob", 3), message(5, "bob", 2), message(6, "carol", 0), message(7, "alice", 8)}
	want := []letter.Flags{{SupersededBy: three.ID}, {SupersededBy: behind[1].ID, Newer: 2}, {Newer: 1}}
	if diff := cmp.Diff(want, Flags([]*Item{one, two, three}, behind)); diff != "" {
		t.Error(diff)
	}
}
