package maildir

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Flags knows what replaces a message, with and without a mark on disk.
func TestFlags(t *testing.T) {
	message := func(n int, from wire.Name, supersedes int) *Item {
		id := func(n int) wire.ID { return wire.ID(fmt.Sprintf("01900000-0000-7000-8000-%012d", n)) }
		m := &wire.Message{ID: id(n), From: wire.Address{Agent: from, Team: "main"}}
		if supersedes > 0 {
			m.Supersedes = id(supersedes)
		}
		return &Item{Message: m}
	}
	one, two, three, nine := message(1, "alice", 0), message(2, "bob", 0), message(3, "alice", 1), message(9, "dave", 9)
	behind := []*Item{message(4, "bob", 3), message(5, "bob", 2), message(6, "carol", 0), message(7, "alice", 8), message(8, "dave", 9)}
	// The order of two ids does not matter, and no message replaces itself.
	want := []letter.Flags{{SupersededBy: three.ID}, {SupersededBy: behind[1].ID, Newer: 2}, {Newer: 1}, {SupersededBy: behind[4].ID}}
	if diff := cmp.Diff(want, Flags([]*Item{one, two, three, nine}, behind)); diff != "" {
		t.Error(diff)
	}
}

// The superseded mark of a message is removed once the message has left the inbox, but not by a dry run.
func TestGCForgetsWhatWasSuperseded(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	var unread, kept, archived wire.ID
	for days, old := range map[int]*wire.ID{9: &unread, 8: &kept, 20: &archived} {
		*old = daysAgo(days)
		deliver(t, bob, withID(*old, message("old")))
		m := message("new")
		m.Supersedes = *old
		deliver(t, bob, m)
	}
	for _, id := range []wire.ID{kept, archived} {
		must(t, moveTo(bob, id, "done"))
	}
	for _, c := range []struct {
		opt  GCOptions
		left int
	}{{GCOptions{Before: time.Now(), DryRun: true}, 3}, {GCOptions{Before: time.Now().AddDate(0, 0, -15)}, 2}, {GCOptions{Before: time.Now()}, 1}} {
		_, err := bob.GC(ctx, c.opt)
		if left := bob.marked(); err != nil || len(left) != c.left {
			t.Error(left, err)
		}
	}
	if it, err := bob.Get(unread); err != nil || it.SupersededBy == "" {
		t.Error(it, err)
	}
}

// Another sender's message is not superseded.
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
	file := message("new")
	drop(t, bob, "inbox", "new.json", `{"id":"`+string(file.ID)+`","from":"alice","supersedes":"`+string(old.ID)+`","body":"new"}`)
	settleDrops(t, bob)
	if it, err := bob.Get(old.ID); err != nil || it.SupersededBy != "" {
		t.Error(it, err)
	}
	if it, err := bob.Get(file.ID); err != nil || it.Supersedes != "" {
		t.Error(it, err)
	}
}

// Whoever looks at one message lists no directory that grows with the others.
func TestGetListsNoOtherMarks(t *testing.T) {
	t.Parallel()
	var listed []string
	bob := openStore(t, scratch(t), func(op, name string) error {
		if op == "list" {
			listed = append(listed, name)
		}
		return nil
	}, "bob").Box("bob")
	old, m := message("old"), message("new")
	m.Supersedes = old.ID
	deliver(t, bob, old)
	deliver(t, bob, m)
	listed = nil
	if it, err := bob.Get(old.ID); err != nil || it.SupersededBy != m.ID {
		t.Error(it, err)
	}
	equal(t, "listed", listed, "bob/inbox/superseded/"+string(old.ID))
}
