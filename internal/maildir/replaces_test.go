package maildir_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// Flags knows what replaces a message.
func TestFlags(t *testing.T) {
	message := func(n int, from wire.Name, supersedes int) *wire.Item {
		id := func(n int) wire.ID { return wire.ID(fmt.Sprintf("01900000-0000-7000-8000-%012d", n)) }
		m := &wire.Message{ID: id(n), From: wire.Address{Agent: from, Team: "main"}}
		if supersedes > 0 {
			m.Supersedes = id(supersedes)
		}
		return &wire.Item{Message: m}
	}
	one, two, three, nine := message(1, "alice", 0), message(2, "bob", 0), message(3, "alice", 1), message(9, "dave", 9)
	behind := []*wire.Item{message(4, "bob", 3), message(5, "bob", 2), message(6, "carol", 0), message(7, "alice", 8), message(8, "dave", 9)}
	// The order of two ids does not matter, and no message replaces itself.
	want := []letter.Flags{{SupersededBy: three.ID}, {SupersededBy: behind[1].ID, Newer: 2}, {Newer: 1}, {SupersededBy: behind[4].ID}}
	if diff := cmp.Diff(want, maildir.Flags([]*wire.Item{one, two, three, nine}, behind)); diff != "" {
		t.Error(diff)
	}
}

// A message withdraws the unread one that it replaces; not one that its reader has. Delivered again, as after a kill, it
// does so too.
func TestReplaces(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	state := func(id wire.ID) wire.State {
		it, err := bob.Get(id)
		must(t, err)
		return it.State
	}
	old, read, m := message("old"), message("read"), message("new")
	deliver(t, bob, old)
	deliver(t, bob, read)
	must(t, moveTo(bob, read.ID, "done"))
	m.Supersedes = old.ID
	put(t, bob, "inbox/new", m) // and its sender is killed
	if got := state(old.ID); got != wire.Unread {
		t.Error("the old one beside the new one", got)
	}
	if o := post(bob, m, true); o.Err != nil || !o.WasDelivered {
		t.Error(o)
	}
	if got := state(old.ID); got != wire.Withdrawn {
		t.Error("the old one", got)
	}
	other := message("newer")
	other.Supersedes = read.ID
	deliver(t, bob, other)
	if got := state(read.ID); got != wire.Done {
		t.Error("the one that was read", got)
	}
}

// Another sender's message is not replaced.
func TestSupersedesOfAnother(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	old, m := message("old"), message("new")
	m.From.Agent, m.Supersedes = "carol", old.ID
	deliver(t, bob, old)
	deliver(t, bob, m)
	it, err := bob.Get(m.ID)
	if err != nil || it.Supersedes != "" {
		t.Error(it, err)
	}
	// Nor is one that was sent by a file that claims to be from its sender.
	dropFile(t, bob, "inbox", "new.json", `{"from":"alice","supersedes":"`+string(old.ID)+`","body":"new"}`)
	settleDrops(t, bob)
	if it, err := bob.Get(old.ID); err != nil || it.State != wire.Unread {
		t.Error(it, err)
	}
	for id, m := range takeCensus(t, bob).texts {
		if it, err := bob.Get(id); m.IsDropped() && (err != nil || it.Supersedes != "") {
			t.Error(it, err)
		}
	}
}
