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

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// put writes a message's file as a delivery does, without waiting for a disk.
func put(t tb, b *Box, where string, m *wire.Message) {
	t.Helper()
	dir := filepath.Join(b.Path(), where)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, string(m.ID)+".json"), m.Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// counter counts the files of messages that are opened, and the listings.
type counter struct{ opens, lists atomic.Int64 }

func (c *counter) fault(op atomicfile.Op, name string) error {
	switch {
	case op == atomicfile.OpOpen && strings.HasSuffix(name, ".json"):
		c.opens.Add(1)
	case op == atomicfile.OpList:
		c.lists.Add(1)
	}
	return nil
}

func (c *counter) of(f func()) (opens, lists int64) {
	o, l := c.opens.Load(), c.lists.Load()
	f()
	return c.opens.Load() - o, c.lists.Load() - l
}

// Of 10,000 unread messages no more are opened than are shown; a full id is
// found without a listing; a delivery looks at none.
func TestLimits(t *testing.T) {
	t.Parallel()
	const n = 10_000
	c := &counter{}
	s := openStore(t, scratch(t), c.fault, "bob")
	bob := s.Box("bob")
	for i := range n {
		m := message("alice", fmt.Sprint(i))
		m.RequiresAck = i%2 == 0
		put(t, bob, "inbox/new", m)
	}
	for i := range 100 {
		m := message("alice", fmt.Sprint(i))
		m.ID = oldID(i % 3)
		put(t, bob, "inbox/done/"+m.ID.Day(), m)
	}
	list, total, err := bob.UnreadIDs(0)
	if err != nil || total != n || !slices.IsSorted(list) {
		t.Fatal(total, err)
	}
	// At most so many files are opened and directories listed: the inbox and
	// its tmp for what was dropped, and new; the events, to append to them.
	check := func(what string, opens, lists int64, f func()) {
		t.Helper()
		if o, l := c.of(f); o > opens || l > lists {
			t.Errorf("%s: %d files opened, at most %d; %d listings, at most %d", what, o, opens, l, lists)
		}
	}
	check("peek", 10, 3, func() {
		b, err := bob.Peek(ctx, ReadOptions{Limit: 10})
		if err != nil || len(b.Items) != 10 || b.More != n-10 || b.Items[9].ID != list[9] {
			t.Error(len(b.Items), b.More, err)
		}
	})
	check("peek with a look ahead", 15, 3, func() {
		b, err := bob.Peek(ctx, ReadOptions{Limit: 10, LookAhead: 5})
		if err != nil || len(b.Items) != 10 || len(b.Ahead) != 5 || b.More != n-10 {
			t.Error(len(b.Items), len(b.Ahead), b.More, err)
		}
	})
	check("peek of what fits", 5, 3, func() {
		room := 4
		b, err := bob.Peek(ctx, ReadOptions{Fits: func(*wire.Message) bool { room--; return room >= 0 }})
		if err != nil || len(b.Items) != 4 || b.More != n-4 {
			t.Error(len(b.Items), b.More, err)
		}
	})
	check("peek at one", 1, 2, func() {
		b, err := bob.Peek(ctx, ReadOptions{IDs: list[5:6]})
		if err != nil || len(b.Items) != 1 || b.Items[0].ID != list[5] {
			t.Error(b, err)
		}
	})
	for _, newest := range []bool{false, true} {
		check("walk", 10, 3, func() {
			var got []wire.ID
			more, bad, err := bob.Walk(ctx, Range{Unread: true, Newest: newest, Limit: 10}, func(it *Item) bool { got = append(got, it.ID); return true })
			want := slices.Clone(list[:10])
			if newest {
				want = slices.Clone(list[n-10:])
				slices.Reverse(want)
			}
			if err != nil || bad != 0 || more != n-10 || !slices.Equal(got, want) {
				t.Error(newest, got, more, bad, err)
			}
		})
	}
	check("walk of all places", 10, 3+5, func() {
		more, _, err := bob.Walk(ctx, Range{Unread: true, Owed: true, Done: true, Withdrawn: true, Limit: 10}, func(*Item) bool { return true })
		if err != nil || more != n-10+100 {
			t.Error(more, err)
		}
	})
	check("count", 0, 5, func() {
		if n, err := bob.Count(ctx); err != nil || n.Unread != 10_000 || n.Owed != 0 {
			t.Error(n, err)
		}
	})
	check("get", 1, 0, func() {
		if it, err := bob.Get(list[n/2]); err != nil || it.State != Unread {
			t.Error(it, err)
		}
	})
	check("a full id", 0, 0, func() {
		if ids, err := bob.Match(wire.Fragment(list[7])); err != nil || len(ids) != 1 {
			t.Error(ids, err)
		}
	})
	check("a full id that is nowhere", 0, 0, func() {
		if ids, err := bob.Match(wire.Fragment(wire.NewID())); err != nil || len(ids) != 0 {
			t.Error(ids, err)
		}
	})
	check("a delivery", 0, 0, func() {
		p := &Post{Message: message("alice", "x"), To: []*Box{bob}, Given: true}
		if Deliver(ctx, p); p.Outcomes[0].Err != nil {
			t.Error(p.Outcomes[0].Err)
		}
	})
	check("take, unread, settle", 3, 3, func() {
		_, err1 := bob.Take(ctx, list[0])
		_, err2 := bob.Unread(ctx, list[0])
		if err := errors.Join(err1, err2, bob.Settle(ctx, list[0], true)); err != nil {
			t.Error(err)
		}
	})
	check("a reading", 10, 4, func() {
		b, err := bob.Read(ctx, ReadOptions{Limit: 10}, takeAll)
		if err != nil || len(b.Items) != 10 || b.Items[0].ID != list[1] {
			t.Error(len(b.Items), err)
		}
	})
}

// Bad files under messages' names hide no good message behind them, however
// many there are and whoever looks, and moves nothing, again and again.
func TestBadFilesHideNothing(t *testing.T) {
	t.Parallel()
	for _, torn := range []int{1, 3, 200} {
		s := openStore(t, scratch(t), nil, "bob")
		bob := s.Box("bob")
		tear := func() {
			name := string(wire.NewID()) + ".json"
			if err := os.WriteFile(filepath.Join(bob.Path(), "inbox", "new", name), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var want []wire.ID
		for i := range 6 {
			for range torn / 2 {
				tear()
			}
			m := message("alice", fmt.Sprint(i))
			put(t, bob, "inbox/new", m)
			want = append(want, m.ID)
			for range torn - torn/2 {
				tear()
			}
		}
		for _, limit := range []int{1, 2, 4, 6, 7, 0} {
			expect := want
			if limit > 0 {
				expect = want[:min(limit, 6)]
			}
			for _, ahead := range []int{0, 2} {
				b, err := bob.Peek(ctx, ReadOptions{Limit: limit, LookAhead: ahead})
				if err != nil || !slices.Equal(idsOf(b.Items), expect) || len(b.Items)+b.More < 6 {
					t.Errorf("%d torn, limit %d: peek shows %d and %d more: %v", torn, limit, len(b.Items), b.More, err)
				}
			}
			for _, newest := range []bool{false, true} {
				var got []wire.ID
				_, bad, err := bob.Walk(ctx, Range{Unread: true, Limit: limit, Newest: newest}, func(it *Item) bool { got = append(got, it.ID); return true })
				all := slices.Clone(want)
				if newest {
					slices.Reverse(all)
				}
				if err != nil || torn > 1 && bad == 0 || !slices.Equal(got, all[:len(expect)]) {
					t.Errorf("%d torn, limit %d, newest %v: walk shows %d, %d bad: %v", torn, limit, newest, len(got), bad, err)
				}
			}
		}
		for i := range 3 {
			b, err := bob.Read(ctx, ReadOptions{Limit: 2}, takeAll)
			if err != nil || !slices.Equal(idsOf(b.Items), want[2*i:2*i+2]) {
				t.Errorf("%d torn: reading %d shows %d: %v", torn, i, len(b.Items), err)
			}
		}
		if b, err := bob.Read(ctx, ReadOptions{Limit: 2}, takeAll); err != nil || len(b.Items)+b.More != 0 {
			t.Errorf("at last %d and %d more: %v", len(b.Items), b.More, err)
		}
		// What a kill left of a reason is no bad file.
		os.WriteFile(filepath.Join(bob.Path(), "inbox", "bad", ".x.reason.1.1"), nil, 0o600)
		n, err := bob.Count(ctx)
		bad, err2 := bob.BadFiles(0)
		if err != nil || err2 != nil || n.Bad != 6*torn || len(bad) != n.Bad || n.Unread != 0 {
			t.Errorf("%d torn: %+v, %d bad files: %v, %v", torn, n, len(bad), err, err2)
		}
	}
}

func idsOf(items []*Item) (out []wire.ID) {
	for _, it := range items {
		out = append(out, it.ID)
	}
	return out
}

// Fits may add up: it is asked once about each message, also when files that
// were dropped into new have to be taken in first.
func TestFitsAddsUp(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	for i := range 4 {
		deliver(t, bob, message("alice", fmt.Sprint(i)))
	}
	for _, read := range []bool{false, true} {
		drop(t, bob, "inbox/new", "note", []byte("dropped"))
		size := 0
		opt := ReadOptions{Fits: func(*wire.Message) bool { size++; return size <= 3 }}
		var b Batch
		var err error
		if read {
			b, err = bob.Read(ctx, opt, takeAll)
		} else {
			b, err = bob.Peek(ctx, opt)
		}
		if err != nil || len(b.Items) != 3 || size != 4 {
			t.Errorf("%d shown, Fits was asked %d times: %v", len(b.Items), size, err)
		}
	}
}

// A mailbox, or a part of one, that is a symbolic link is refused, and nothing
// behind it is read or written.
func TestLinkedMailbox(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"", "inbox", "inbox/new", "inbox/tmp", "inbox/cur", "inbox/bad", "inbox/done", "events", "sent"} {
		t.Run("bob/"+part, func(t *testing.T) {
			path := scratch(t)
			s := openStore(t, path, nil, "bob", "alice")
			bob := s.Box("bob")
			m := message("alice", "x")
			m.RequiresAck = true
			put(t, bob, "inbox/new", m)
			outside := filepath.Join(scratch(t), "outside")
			at := filepath.Join(path, "bob", part)
			if err := errors.Join(os.Rename(at, outside), os.Symlink(outside, at)); err != nil {
				t.Skip("no links here: ", err)
			}
			before := tree(t, outside)
			p := &Post{Message: message("alice", "y"), To: []*Box{bob}, Sender: bob}
			Deliver(ctx, p)
			_, readErr := bob.Read(ctx, ReadOptions{}, takeAll)
			if part == "" || part == "inbox" || part == "inbox/new" {
				if !errors.Is(p.Outcomes[0].Err, atomicfile.ErrNotDirectory) || p.Outcomes[0].Stored {
					t.Error("delivered: ", p.Outcomes[0])
				}
				if !errors.Is(readErr, atomicfile.ErrNotDirectory) || bob.Exists() {
					t.Error("read: ", readErr)
				}
				if agents, err := s.Agents(); err != nil || slices.Contains(agents, "bob") {
					t.Error(agents, err)
				}
			}
			drop(t, s.Box("alice"), "inbox", "note", []byte("x"))
			bob.TakeIn(ctx)
			bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "a"})
			bob.GC(ctx, GCOptions{})
			bob.Settle(ctx, m.ID, true)
			if after := tree(t, outside); !slices.Equal(before, after) {
				t.Errorf("outside:\n%s\nwas\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
			}
		})
	}
}

// Nor does a link lead from one mailbox into another of the team.
func TestLinkWithinATeam(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"", "inbox", "inbox/new", "inbox/tmp", "inbox/done"} {
		s := openStore(t, scratch(t), nil, "bob", "alice")
		bob := s.Box("bob")
		at := filepath.Join(teamPath(s), "bob", part)
		up := strings.Repeat("../", strings.Count("bob/"+part, "/")) // from where the link lies
		if part == "" {
			up = ""
		}
		if err := errors.Join(os.RemoveAll(at), os.Symlink(filepath.Join(up, "alice", part), at)); err != nil {
			t.Skip("no links here: ", err)
		}
		if info, err := os.Stat(at); err != nil || !info.IsDir() {
			t.Fatal(info, err)
		}
		deliver(t, s.Box("alice"), message("carol", "for alice"))
		p := &Post{Message: message("carol", "for bob"), To: []*Box{bob}, Given: true}
		Deliver(ctx, p)
		if p.Outcomes[0].Err == nil {
			t.Errorf("%s: delivered through a link", at)
		}
		b, err := bob.Read(ctx, ReadOptions{}, takeAll)
		if err == nil && len(b.Items) > 0 {
			t.Errorf("%s: read through a link", at)
		}
		if c := takeCensus(t, teamPath(s), "alice"); len(c.places) != 1 || c.place(c.ids()[0]) != placeNew {
			t.Errorf("%s: %v", at, c.places)
		}
	}
}

func tree(t testing.TB, top string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(top, func(p string, e os.DirEntry, err error) error {
		if err == nil {
			info, _ := e.Info()
			out = append(out, fmt.Sprint(strings.TrimPrefix(p, top), info.Size(), info.Mode()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A link at .locks is refused.
func TestLinkedLocks(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(path, ".locks")); err != nil {
		t.Skip("no links here: ", err)
	}
	d, err := atomicfile.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(d, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Create(ctx, "bob"); err == nil {
		t.Error("locked through a link")
	}
}

// People quote any prefix or suffix; the first place with a match decides.
func TestMatch(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	id := func(prefix, suffix string) wire.ID {
		return wire.ID("0190" + prefix + "-0000-7000-8000-00000000" + suffix)
	}
	at := func(where string, id wire.ID) {
		m := message("alice", "x")
		m.ID = id
		put(t, bob, where, m)
	}
	fresh, owed, read := id("1111", "aaaa"), id("2222", "aaaa"), id("3333", "aaaa")
	at("inbox/new", fresh)
	at("inbox/cur", owed)
	at("inbox/done/"+read.Day(), read)
	at("inbox/withdrawn", id("4444", "bbbb"))
	at("sent/"+id("5555", "cccc").Day(), id("5555", "cccc"))
	at("../.archive/bob/done/"+id("6666", "dddd").Day(), id("6666", "dddd"))
	for f, want := range map[string][]wire.ID{
		"aaaa": {fresh, owed}, "01901111": {fresh}, "01903333": {read}, "3333-0000": nil, "0190": {fresh, owed},
		"bbbb": {id("4444", "bbbb")}, "cccc": {id("5555", "cccc")}, "dddd": {id("6666", "dddd")}, "eeee": nil,
		string(read): {read}, strings.ToUpper(string(read)): {read}, string(id("5555", "cccc")): {id("5555", "cccc")},
		string(id("9999", "aaaa")): nil,
	} {
		frag, err := wire.ParseFragment(f)
		if err != nil {
			t.Fatal(f, err)
		}
		if got, err := bob.Match(frag); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", f, got, err, want)
		}
	}
}
