package mailbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// readOn puts so many read messages into the day that lies so many days back.
func readOn(t testing.TB, b *Box, days, n int) (out []wire.ID) {
	t.Helper()
	for range n {
		m := message("alice", "x")
		m.ID = oldID(days)
		put(t, b, "inbox/done/"+m.ID.Day(), m)
		out = append(out, m.ID)
	}
	return out
}

// Whole days move to the archive, and only those that are old and hold none of
// the newest messages; a dry run says the same.
func TestGC(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	old, older, fresh := readOn(t, bob, 10, 2), readOn(t, bob, 20, 3), readOn(t, bob, 0, 1)
	unread, owed := message("alice", "x"), message("alice", "y")
	unread.ID, owed.ID, owed.RequiresAck = oldID(30), oldID(30), true
	put(t, bob, "inbox/new", unread)
	put(t, bob, "inbox/cur", owed)
	check := func(about string, opt GCOptions, moved, skipped int) {
		t.Helper()
		for _, opt.DryRun = range []bool{true, false} {
			m, err := bob.GC(ctx, opt)
			if err != nil || m.Messages != moved || m.Skipped != skipped || (m.Bytes > 0) != (moved > 0) {
				t.Errorf("%s, dry %v: %+v, %v", about, opt.DryRun, m, err)
			}
		}
		takeCensus(t, teamPath(s), "bob").sound(t)
	}
	now := time.Now()
	check("nothing is so old", GCOptions{Before: now.AddDate(0, 0, -40)}, 0, 6)
	check("all are among the last", GCOptions{Before: now, KeepLast: 6}, 0, 6)
	check("one of the older is among the last", GCOptions{Before: now, KeepLast: 4}, 0, 6)
	check("the older", GCOptions{Before: now, KeepLast: 3}, 3, 3)
	check("again", GCOptions{Before: now, KeepLast: 3}, 0, 3)
	more := readOn(t, bob, 20, 2) // a day that is in the archive already
	check("the rest", GCOptions{Before: now}, 4, 1)
	c := takeCensus(t, teamPath(s), "bob")
	for _, id := range slices.Concat(old, older, more) {
		if c.place(id) != placeArchive {
			t.Errorf("%s is in %s", id, c.place(id))
		}
	}
	if c.place(fresh[0]) != placeDone || c.place(unread.ID) != placeNew || c.place(owed.ID) != placeCur {
		t.Error("what is new, owed or of today was moved")
	}
	if days := filesIn(t, filepath.Join(bob.Path(), "inbox", "done"), nil); len(days) != 0 {
		t.Error(days)
	}
	list, _ := os.ReadDir(filepath.Join(bob.Path(), "inbox", "done"))
	if len(list) != 1 {
		t.Errorf("%d days are left", len(list))
	}
	// An archived message is found, is known, and can be put back.
	if it, err := bob.Get(old[0]); err != nil || it.State != Done {
		t.Error(it, err)
	}
	if moved, err := bob.Unread(ctx, old[0]); err != nil || !moved {
		t.Error(moved, err)
	}
}

// What the archive has already is a duplicate.
func TestGCDuplicate(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	id := readOn(t, bob, 5, 1)[0]
	if _, err := bob.GC(ctx, GCOptions{Before: time.Now()}); err != nil {
		t.Fatal(err)
	}
	m := message("alice", "second")
	m.ID = id
	put(t, bob, "inbox/done/"+id.Day(), m)
	if _, err := bob.GC(ctx, GCOptions{Before: time.Now()}); err != nil {
		t.Fatal(err)
	}
	c := takeCensus(t, teamPath(s), "bob")
	c.sound(t)
	if len(c.bad) != 1 || c.texts[id].Body != "x" {
		t.Error(c.bad, c.places)
	}
}

// What was being written and is older than 36 hours goes; claims, which are
// mail, and what is nobody's stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	tmp := filepath.Join(bob.Path(), "inbox", "tmp")
	id := string(wire.NewID())
	for name, age := range map[string]time.Duration{
		id + ".1.1": 37 * time.Hour, id + ".2.1": 35 * time.Hour, id + ".note.drop": 100 * time.Hour, "theirs": 100 * time.Hour,
	} {
		at := time.Now().Add(-age)
		path := filepath.Join(tmp, name)
		os.WriteFile(path, []byte("x"), 0o600)
		os.Chtimes(path, at, at)
	}
	if h, err := bob.Examine(false); err != nil || !slices.Equal(h.Stale, []string{id + ".1.1"}) || h.Claims != 1 {
		t.Error(h, err)
	}
	if _, err := bob.GC(ctx, GCOptions{DryRun: true}); err != nil || len(filesIn(t, tmp, nil)) != 4 {
		t.Error("a dry run swept", err)
	}
	if _, err := bob.GC(ctx, GCOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, filesIn(t, tmp, nil), id+".2.1", id+".note.drop", "theirs")
}
