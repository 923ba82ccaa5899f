package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// readOn puts so many read messages into the day that lies so many days back.
func readOn(t testing.TB, b *Box, days, n int) (ids []wire.ID) {
	t.Helper()
	for range n {
		m := withID(daysAgo(days), message("x"))
		put(t, b, "inbox/done/"+m.ID.Day(), m)
		ids = append(ids, m.ID)
	}
	return ids
}

// A day that is in the archive already is joined; what lies there already is a duplicate.
// Which days move, the model says.
func TestGC(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	want := map[wire.ID]string{}
	for _, n := range []int{2, 3} {
		ids := readOn(t, bob, 20, n)
		for _, dry := range []bool{true, false} {
			if m, err := bob.GC(ctx, GCOptions{Before: time.Now(), DryRun: dry}); err != nil || m.Messages != n || m.Bytes == 0 || m.Skipped != 0 {
				t.Errorf("dry %v: %+v, %v", dry, m, err)
			}
		}
		for _, id := range ids {
			want[id] = "archive"
		}
		takeCensus(t, bob).is(t, want)
		m := withID(ids[0], message("second"))
		put(t, bob, "inbox/done/"+m.ID.Day(), m)
		if _, err := bob.GC(ctx, GCOptions{Before: time.Now()}); err != nil {
			t.Error(err)
		}
		if c := takeCensus(t, bob); c.texts[m.ID].Body != "x" || !slices.Contains(c.bad, fileOf(m.ID)) {
			t.Error(c.bad)
		}
	}
	if list, _ := os.ReadDir(filepath.Join(bob.Path(), "inbox/done")); len(list) != 0 {
		t.Errorf("%d days are left", len(list))
	}
	takeCensus(t, bob).is(t, want)
}

// A day that vanishes while gc looks ends nothing.
func TestGCWhenADayVanishes(t *testing.T) {
	t.Parallel()
	var vanish atomic.Value
	vanish.Store("")
	var bob *Box
	bob = openStore(t, scratch(t), func(op, name string) error {
		if when := vanish.Load().(string); when != "" && strings.HasPrefix(op+" "+name, when) {
			os.RemoveAll(bob.store.root.Join(name))
		}
		return nil
	}, "bob").Box("bob")
	for _, when := range []string{"list", "rename"} {
		gone, other := readOn(t, bob, 4, 1)[0], readOn(t, bob, 9, 1)[0]
		vanish.Store(when + " bob/inbox/done/" + gone.Day())
		stale := filepath.Join(bob.Path(), "inbox/tmp", string(past)+".x")
		writeOld(t, stale)
		if _, err := bob.GC(ctx, GCOptions{Before: time.Now()}); err != nil {
			t.Error(when, err)
		}
		if _, err := os.Stat(stale); err == nil || takeCensus(t, bob).place(other) != "archive" {
			t.Errorf("%s: gc did not go on", when)
		}
	}
}

// writeOld writes a file that nobody has touched for 37 hours.
func writeOld(t testing.TB, path string) {
	t.Helper()
	write(t, path, "x")
	at := time.Now().Add(-37 * time.Hour)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// What was being written and is older than 36 hours goes, wherever a kill left it; mail
// that is being taken in, and what is somebody else's, stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	id := string(wire.NewID())
	var stale, stay []string
	for _, name := range []string{
		"bob/inbox/tmp/" + id + ".1", "bob/.state.json.X.tmp", "bob/run/.claims.json.X.tmp", "bob/events/.base.json.X.tmp",
		"bob/inbox/bad/.x.reason.X.tmp", "bob/sent/2026-01-02/.x.json.X.tmp", "bob/sent/once/.X.tmp", ".files/.X.tmp", ".sessions/.x.json.X.tmp",
	} {
		writeOld(t, bob.store.root.Join(name))
		stale = append(stale, name)
		write(t, bob.store.root.Join(name+"2.tmp"), "x") // fresh
		stay = append(stay, name+"2.tmp")
	}
	for _, name := range []string{"bob/inbox/tmp/" + id + ".note.drop", "bob/inbox/tmp/theirs", "bob/inbox/bad/x.tmp", "bob/inbox/new/" + id + ".json", "bob/run/.theirs"} {
		writeOld(t, bob.store.root.Join(name))
		stay = append(stay, name)
	}
	if h, err := bob.Examine(false); err != nil || len(h.Stale) != len(stale) || h.Begun != 1 {
		t.Error(h, err)
	}
	there := func(names []string) (n int) {
		for _, name := range names {
			_, err := os.Stat(bob.store.root.Join(name))
			n += count(err == nil)
		}
		return n
	}
	if _, err := bob.GC(ctx, GCOptions{DryRun: true}); err != nil || there(stale) != len(stale) {
		t.Error("a dry run swept: ", err)
	}
	if _, err := bob.GC(ctx, GCOptions{}); err != nil || there(stale) != 0 || there(stay) != len(stay) {
		t.Errorf("%d stale are left, and %d of %d others: %v", there(stale), there(stay), len(stay), err)
	}
}

func TestRetireAndRestore(t *testing.T) {
	t.Parallel()
	s := newStore(t, "bob")
	bob := s.Box("bob")
	if err := s.Restore(ctx, "bob", ""); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if err := s.Restore(ctx, "carol", ""); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
	first := deliverN(t, bob, 1)[0]
	if err := bob.Log().Append(ctx, wire.Event{Kind: "a", Source: "cli"}); err != nil {
		t.Fatal(err)
	}
	drop(t, bob, "inbox", "note", "not taken in yet")
	where, err := s.Retire(ctx, "bob")
	if err != nil || !strings.HasPrefix(where, ".archive/retired/bob.") {
		t.Fatal(where, err)
	}
	if err := bob.Log().Append(ctx, wire.Event{Kind: "b"}); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
	// Another of that name, retired later, is the one that comes back first.
	if err := s.Create(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	second := deliverN(t, bob, 1)[0]
	if _, err := s.Retire(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Retired(); err != nil || len(all) != 2 || all[0] != filepath.Base(where) {
		t.Error(all, err)
	}
	if err := s.Restore(ctx, "bob", "bob.20260101T000000.000000000Z"); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
	if err := s.Restore(ctx, "bob", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Get(second); err != nil {
		t.Error(err)
	}
	if _, err := bob.Get(first); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := s.Retire(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(ctx, "bob", filepath.Base(where)); err != nil {
		t.Fatal(err)
	}
	settleDrops(t, bob)
	if got := read(t, bob); len(got) != 2 || got[0] != first {
		t.Error(got)
	}
	if events := logged(t, bob); events[0] != "a " {
		t.Error(events)
	}
}

// What is made in a mailbox while it is retired goes with it: none comes of it.
func TestRetireWhileSomethingIsMade(t *testing.T) {
	t.Parallel()
	var s *Store
	var armed atomic.Bool
	path := scratch(t)
	other := openStore(t, path, nil, "bob")
	s = openStore(t, path, func(op, name string) error {
		if op == "mkdir" && armed.CompareAndSwap(true, false) {
			if _, err := other.Retire(ctx, "bob"); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	armed.Store(true)
	s.Box("bob").NoteSent(message("x"))
	if there, err := s.root.Exists("bob"); there || err != nil || armed.Load() {
		t.Error("bob is there: ", err)
	}
	if err := s.Restore(ctx, "bob", ""); err != nil {
		t.Error(err)
	}
}

// Many make the same agent: one does, and none is half-made at any moment.
func TestCreate(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, nil)
	errs := make(chan error)
	for range 4 {
		other := openStore(t, path, nil)
		go func() { errs <- other.Create(ctx, "bob") }()
	}
	made := 0
	for range 4 {
		switch err := <-errs; {
		case err == nil:
			made++
		case !errors.Is(err, ErrExists):
			t.Error(err)
		}
	}
	if made != 1 || !s.Box("bob").Exists() {
		t.Error(made)
	}
	for _, name := range []wire.Name{"", "..", "Bob", "all", "drop", ".locks", "a/b"} {
		if err := s.Create(ctx, name); err == nil {
			t.Errorf("%q was made", name)
		}
	}
	// What somebody began to make by hand is completed; a link at .locks is refused.
	write(t, s.root.Join("carol/notes"), "x")
	if err := s.Create(ctx, "carol"); err != nil || !s.Box("carol").Exists() {
		t.Error(err)
	}
	if agents, err := s.Agents(); err != nil || fmt.Sprint(agents) != "[bob carol]" {
		t.Error(agents, err)
	}
	os.Rename(s.root.Join(".locks"), s.root.Join(".l"))
	if err := os.Symlink(".l", s.root.Join(".locks")); err == nil && s.Create(ctx, "dave") == nil {
		t.Error("locked through a link")
	}
}

// What a backup lists it can read, though it moves meanwhile, and put back where it was,
// once.
func TestListCopyPut(t *testing.T) {
	t.Parallel()
	s := newStore(t, "bob", "carol")
	bob, carol := s.Box("bob"), s.Box("carol")
	want := map[wire.ID]State{}
	for i, state := range []State{Unread, Owed, Done, Withdrawn, Unread, Owed} {
		m := withID(daysAgo(i), message(string(state)))
		m.RequiresAck = state == Owed
		deliver(t, bob, m)
		if err := moveTo(bob, m.ID, map[State]string{Owed: "cur", Done: "done", Withdrawn: "withdrawn"}[state]); err != nil {
			t.Fatal(err)
		}
		want[m.ID] = state
	}
	list, err := bob.List(ctx)
	if err != nil || len(list) != len(want) {
		t.Fatal(list, err)
	}
	for _, e := range list { // everything moves on before it is copied
		if want[e.ID] != e.State {
			t.Errorf("%s is listed as %s", e.ID, e.State)
		}
		if err := bob.MarkAcked(ctx, e.ID, bob.Address(), true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bob.GC(ctx, GCOptions{Before: time.Now().AddDate(0, 0, 2)}); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		e := &list[i]
		data, err := bob.Copy(e)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, first := range []bool{true, false} {
			if put, err := carol.Put(ctx, want[e.ID], data); err != nil || put != first {
				t.Errorf("put %v, want %v: %v", put, first, err)
			}
		}
		it, err := carol.Get(e.ID)
		if err != nil || it.State != want[e.ID] || it.Body != string(want[e.ID]) {
			t.Errorf("%s came back as %+v: %v", want[e.ID], it, err)
		}
	}
	takeCensus(t, carol).sound(t)
	if _, err := bob.Copy(&Entry{ID: past}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := carol.Put(ctx, Bad, encoded(t, message("x"))); err == nil {
		t.Error("put back as bad")
	}
	if _, err := carol.Put(ctx, Unread, []byte("{")); err == nil {
		t.Error("a torn message was put back")
	}
}
