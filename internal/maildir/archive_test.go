package maildir_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/wire"
)

// readOn puts n done messages into the day that many days ago.
func readOn(t testing.TB, b *maildir.Box, days, n int) (ids []wire.ID) {
	t.Helper()
	for range n {
		m := withID(daysAgo(days), message("x"))
		put(t, b, "inbox/done/"+m.ID.Day(), m)
		ids = append(ids, m.ID)
	}
	return ids
}

// GC looks at each message before it takes the lock, and then moves days.
func TestGCLooksWithoutTheLock(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	readOn(t, bob, 3, 1)
	readOn(t, bob, 2, 2)
	for _, dry := range []bool{true, false} {
		looked := 0
		moved, err := keep.GC(ctx, bob, keep.GCOptions{Before: time.Now(), DryRun: dry, Progress: func() {
			looked++
			if held, err := bob.Store().Locks().Held("bob.reader"); held || err != nil {
				t.Error("held", err)
			}
		}})
		if err != nil || looked != 3 || moved.Messages != 3 || moved.Bytes == 0 {
			t.Error(dry, looked, moved, err)
		}
	}
}

// writeOld writes a file that is 37 hours old.
func writeOld(t testing.TB, path string) {
	t.Helper()
	write(t, path, "x")
	at := time.Now().Add(-37 * time.Hour)
	must(t, os.Chtimes(path, at, at))
}

// Temp files older than 36 hours are removed wherever a kill left them. Mail that is being ingested and files of other
// programs stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	id := string(wire.NewID())
	var stale, stay []string
	for _, name := range []string{
		"bob/inbox/tmp/" + id + ".1", "bob/.state.json.X.tmp", "bob/run/.policy.json.X.tmp", "bob/events/.base.json.X.tmp",
		"bob/inbox/bad/.x.reason.X.tmp", "bob/sent/2026-01-02/.x.json.X.tmp", "bob/sent/once/.X.tmp",
	} {
		writeOld(t, bob.Store().Dir().Join(name))
		stale = append(stale, name)
		write(t, bob.Store().Dir().Join(name+"2.tmp"), "x") // fresh
		stay = append(stay, name+"2.tmp")
	}
	empty := "bob/inbox/held/runner,1,20260101T000000.000,20260101T000000.000,,killed"
	must(t, bob.Store().Dir().MkdirAll(empty))
	stale = append(stale, empty)
	for _, name := range []string{"bob/inbox/held/x/" + id + ".json", "bob/inbox/tmp/" + id + ".note.drop", "bob/inbox/tmp/theirs", "bob/inbox/bad/x.tmp", "bob/inbox/new/" + id + ".json", "bob/run/.theirs"} {
		writeOld(t, bob.Store().Dir().Join(name))
		stay = append(stay, name)
	}
	if h, err := keep.Examine(bob, false); err != nil || len(h.Files["tmp.stale"]) != len(stale)-1 || len(h.Files["drop.unfinished"]) != 1 {
		t.Error(h, err)
	}
	l, err := bob.Store().Locks().Lock(ctx, "bob.drops", lockfile.Exclusive, 0, nil)
	must(t, err)
	if h, err := keep.Examine(bob, false); err != nil || len(h.Files["drop.unfinished"]) != 0 {
		t.Error("what is being taken in counts as left: ", h.Files, err)
	}
	l.Unlock()
	there := func(names []string) (n int) {
		for _, name := range names {
			_, err := os.Stat(bob.Store().Dir().Join(name))
			n += count(err == nil)
		}
		return n
	}
	if _, err := keep.GC(ctx, bob, keep.GCOptions{DryRun: true}); err != nil || there(stale) != len(stale) {
		t.Error("a dry run swept: ", err)
	}
	if _, err := keep.GC(ctx, bob, keep.GCOptions{}); err != nil || there(stale) != 0 || there(stay) != len(stay) {
		t.Errorf("%d stale are left, and %d of %d others: %v", there(stale), there(stay), len(stay), err)
	}
}

// If another process moves a day away meanwhile, GC still moves the others and removes stale files.
func TestGCOfADayThatVanishes(t *testing.T) {
	t.Parallel()
	var bob *maildir.Box
	var gone string
	bob = faultyStore(t, func(op, name string) error {
		if at := "bob/inbox/done/" + gone; op == "rename" && name == at {
			return os.Rename(bob.Store().Dir().Join(at), bob.Store().Dir().Join(".elsewhere"))
		}
		return nil
	}, "bob").Box("bob")
	old, vanishes, late := readOn(t, bob, 9, 1)[0], readOn(t, bob, 8, 1)[0], readOn(t, bob, 7, 1)[0]
	gone = vanishes.Day()
	stale := bob.Store().Dir().Join("bob/.state.json.X.tmp")
	writeOld(t, stale)
	if m, err := keep.GC(ctx, bob, keep.GCOptions{Before: time.Now()}); err != nil || m.Messages != 2 {
		t.Error(m, err)
	}
	takeCensus(t, bob).is(t, map[wire.ID]string{old: "archive", late: "archive"})
	if _, err := os.Stat(stale); err == nil {
		t.Error("what is stale is left")
	}
}

// A directory made in an agent that is being retired goes with it, and makes no new agent.
func TestRetiredWhileADirectoryIsMade(t *testing.T) {
	t.Parallel()
	var s *maildir.Store
	var once sync.Once
	armed, retired := false, error(nil)
	s = faultyStore(t, func(op, name string) error {
		if armed && op == "mkdir" && strings.HasPrefix(name, "bob/sent") {
			once.Do(func() { _, retired = keep.Retire(ctx, s, "bob") })
		}
		return nil
	}, "bob")
	armed = true
	m := message("x")
	s.Box("bob").NoteSent(m)
	if there, err := s.Dir().Exists("bob"); there || err != nil || retired != nil {
		t.Error("an agent that was retired is there: ", there, err, retired)
	}
	if err := keep.Restore(ctx, s, "bob"); err != nil {
		t.Error(err)
	}
}

// A mailbox that was moved, perhaps not for good, is said to be moved.
func TestRetiredUnsynced(t *testing.T) {
	armed := false
	s := faultyStore(t, func(op, name string) error {
		if armed && op == "fsync directory" {
			return syscall.EIO
		}
		return nil
	}, "bob")
	armed = true
	where, err := keep.Retire(ctx, s, "bob")
	if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "moved bob to "+where+", but") {
		t.Error(where, err)
	}
}

// If a member is retired during a read, the mail that could not be marked stays in its mailbox.
func TestRetiredWhileRead(t *testing.T) {
	t.Parallel()
	s := newStore(t, "bob")
	bob := s.Box("bob")
	id := deliverN(t, bob, 1)[0]
	b, err := inbox.Read(ctx, bob, inbox.ReadOptions{}, func(b inbox.Batch) (int, error) {
		_, err := keep.Retire(ctx, s, "bob")
		return len(b.Items), err
	})
	if len(b.Items) != 1 || !errors.Is(err, maildir.ErrNoMailbox) {
		t.Error(b, err)
	}
	err = keep.Restore(ctx, s, "bob")
	must(t, err)
	takeCensus(t, bob).is(t, map[wire.ID]string{id: "new"})
}

// A backup can read every message that it lists, even if that moves meanwhile.
func TestListCopy(t *testing.T) {
	t.Parallel()
	s := newStore(t, "bob")
	bob := s.Box("bob")
	want := map[wire.ID]wire.State{}
	for i, state := range []wire.State{wire.Unread, wire.Owed, wire.Done, wire.Withdrawn, wire.Unread, wire.Owed} {
		m := withID(daysAgo(i), message(string(state)))
		m.RequiresAck = state == wire.Owed
		deliver(t, bob, m)
		must(t, moveTo(bob, m.ID, map[wire.State]string{wire.Owed: "cur", wire.Done: "done", wire.Withdrawn: "withdrawn"}[state]))
		want[m.ID] = state
	}
	list, err := keep.ListAll(ctx, bob)
	if err != nil || len(list) != len(want) {
		t.Fatal(list, err)
	}
	for _, at := range list { // everything moves on before it is copied
		if err := bob.MarkAcked(ctx, at.ID, bob.Address()); err != nil && want[at.ID] != wire.Withdrawn {
			t.Fatal(err)
		}
	}
	if _, err := keep.GC(ctx, bob, keep.GCOptions{Before: time.Now().AddDate(0, 0, 2)}); err != nil {
		t.Fatal(err)
	}
	for _, at := range list {
		name, data, err := keep.ReadRaw(bob, at)
		wantName := "bob/inbox/done/" + at.ID.Day() + "/" + nameOf(at.ID)
		if want[at.ID] == wire.Withdrawn {
			wantName = "bob/inbox/withdrawn/" + nameOf(at.ID)
		}
		if m, bad := wire.Decode(data); err != nil || bad != nil || name != wantName || m.Body != string(want[at.ID]) {
			t.Error(name, err, bad)
		}
	}
	if _, _, err := keep.ReadRaw(bob, keep.Place{ID: past, Folder: bob.Unread()}); !errors.Is(err, maildir.ErrNotFound) {
		t.Error(err)
	}
}
