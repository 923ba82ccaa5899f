package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// shortShow lets Read hold its lock for so long only.
func shortShow(t testing.TB, d time.Duration) {
	old := showUnderLock
	showUnderLock = d
	t.Cleanup(func() { showUnderLock = old })
}

func deliverN(t testing.TB, b *Box, n int) (out []wire.ID) {
	t.Helper()
	for i := range n {
		m := message("alice", fmt.Sprint(i))
		deliver(t, b, m)
		out = append(out, m.ID)
	}
	return out
}

// Only what was taken is marked, whatever error comes with it.
func TestReadMarksWhatWasTaken(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 5)
	pipe := errors.New("broken pipe")
	b, err := bob.Read(ctx, ReadOptions{}, func(b Batch) (int, error) { return 2, pipe })
	if err != pipe || len(b.Items) != 5 || b.Unmarked != nil || b.Unlogged != nil {
		t.Error(b, err)
	}
	b, err = bob.Read(ctx, ReadOptions{}, func(b Batch) (int, error) { return 0, nil })
	if err != nil || !slices.Equal(idsOf(b.Items), list[2:]) {
		t.Error(b, err)
	}
	if b, err = bob.Read(ctx, ReadOptions{}, func(b Batch) (int, error) { return 100, nil }); err != nil || len(b.Items) != 3 {
		t.Error(b, err)
	}
	events := eventsOf(t, bob)
	if len(events) != 5 || events[0].Field("batch") != events[1].Field("batch") || events[1].Field("batch") == events[2].Field("batch") {
		t.Error(events)
	}
}

func TestReadChooses(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 6)
	at := func(ns ...int) (out []wire.ID) {
		for _, n := range ns {
			out = append(out, list[n])
		}
		return out
	}
	odd := func(m *wire.Message) bool { return m.Body[0]%2 == 1 }
	for about, c := range map[string]struct {
		opt         ReadOptions
		items, next []wire.ID
		more        int
	}{
		"all":              {ReadOptions{}, list, nil, 0},
		"two":              {ReadOptions{Limit: 2}, at(0, 1), nil, 4},
		"two and a look":   {ReadOptions{Limit: 2, LookAhead: 3}, at(0, 1), at(2, 3, 4), 4},
		"a look too far":   {ReadOptions{Limit: 5, LookAhead: 3}, at(0, 1, 2, 3, 4), at(5), 1},
		"by id":            {ReadOptions{IDs: append(at(4, 1), wire.NewID())}, at(4, 1), nil, 0},
		"none by id":       {ReadOptions{IDs: []wire.ID{}}, nil, nil, 0},
		"odd ones":         {ReadOptions{Match: odd}, at(1, 3, 5), nil, 0},
		"one odd":          {ReadOptions{Match: odd, Limit: 1}, at(1), nil, 2},
		"without two":      {ReadOptions{Skip: map[wire.ID]bool{list[0]: true, list[3]: true}}, at(1, 2, 4, 5), nil, 0},
		"one without two":  {ReadOptions{Limit: 1, Skip: map[wire.ID]bool{list[0]: true, list[3]: true}}, at(1), nil, 3},
		"nothing fits":     {ReadOptions{Fits: func(*wire.Message) bool { return false }}, nil, nil, 6},
		"until one is a 3": {ReadOptions{Fits: func(m *wire.Message) bool { return m.Body != "3" }, LookAhead: 1}, at(0, 1, 2), at(3), 3},
	} {
		b, err := bob.Peek(ctx, c.opt)
		if err != nil || !slices.Equal(idsOf(b.Items), c.items) || !slices.Equal(idsOf(b.Ahead), c.next) || b.More != c.more {
			t.Errorf("%s: %v, ahead %v, %d more, want %d: %v", about, idsOf(b.Items), idsOf(b.Ahead), b.More, c.more, err)
		}
	}
	if c := takeCensus(t, teamPath(s), "bob"); len(filesIn(t, filepath.Join(bob.Path(), "inbox", "new"), nil)) != 6 || len(c.places) != 6 {
		t.Error("a look moved something")
	}
}

// An output that blocks longer than the lock is held: others read on, and what
// is still unread then is marked.
func TestReadWithASlowOutput(t *testing.T) {
	shortShow(t, 20*time.Millisecond)
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 3)
	b, err := bob.Read(ctx, ReadOptions{}, func(b Batch) (int, error) {
		// Only once the lock was let go can another reader go through.
		other, err := bob.Read(ctx, ReadOptions{IDs: list[:1]}, takeAll)
		if err != nil || len(other.Items) != 1 {
			t.Error(other, err)
		}
		return 2, nil
	})
	if err != nil || b.Unmarked != nil || len(b.Items) != 3 {
		t.Error(b, err)
	}
	c := takeCensus(t, teamPath(s), "bob")
	if c.place(list[0]) != placeDone || c.place(list[1]) != placeDone || c.place(list[2]) != placeNew {
		t.Error(c.places)
	}
	if n := len(eventsOf(t, bob)); n != 2 {
		t.Errorf("%d events of two readings", n)
	}
}

// The mailbox is retired, or restored, or another one, when the slow output
// ends.
func TestReadWhileRetired(t *testing.T) {
	shortShow(t, 20*time.Millisecond)
	for _, back := range []bool{false, true} {
		s := openStore(t, scratch(t), nil, "bob")
		bob := s.Box("bob")
		deliverN(t, bob, 1)
		b, err := bob.Read(ctx, ReadOptions{}, func(b Batch) (int, error) {
			if _, err := s.Retire(ctx, "bob"); err != nil {
				t.Error(err)
			}
			if back {
				if err := s.Restore(ctx, "bob"); err != nil {
					t.Error(err)
				}
			}
			return len(b.Items), nil
		})
		if back && (err != nil || b.Unmarked != nil) || !back && !errors.Is(errors.Join(err, b.Unmarked), ErrNoAgent) {
			t.Errorf("back %v: %v, %v", back, err, b.Unmarked)
		}
		if !back {
			if err := s.Restore(ctx, "bob"); err != nil {
				t.Fatal(err)
			}
		}
		want := Counts{Unread: b2i(!back)}
		if n, err := bob.Count(ctx); n != want || err != nil {
			t.Errorf("back %v: %+v, %v", back, n, err)
		}
	}
}

// On a full or read-only disk everything is still looked at, and read shows
// and says that it could not mark.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, errno := range []error{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES} {
		var mu sync.Mutex
		broken := false
		s := openStore(t, scratch(t), func(op atomicfile.Op, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			switch op {
			case atomicfile.OpOpen, atomicfile.OpRead, atomicfile.OpList:
				return nil
			}
			if broken {
				return errno
			}
			return nil
		}, "bob")
		bob := s.Box("bob")
		m := message("alice", "x")
		deliver(t, bob, m)
		for _, where := range []string{"inbox", "inbox/new"} {
			drop(t, bob, where, "note", []byte("cannot be taken in"))
		}
		broken = true
		if b, err := bob.Peek(ctx, ReadOptions{}); err != nil || len(b.Items) != 1 {
			t.Error(errno, b, err)
		}
		if _, _, err := bob.Walk(ctx, Range{Unread: true, Done: true, Archive: true}, func(*Item) bool { return true }); err != nil {
			t.Error(errno, err)
		}
		if n, err := bob.Count(ctx); err != nil || n.Unread != 1 {
			t.Error(errno, n, err)
		}
		if it, err := bob.Get(m.ID); err != nil || it.Body != "x" {
			t.Error(errno, err)
		}
		if list, err := bob.List(ctx); err != nil || len(list) != 1 {
			t.Error(errno, err)
		}
		shown := 0
		b, err := bob.Read(ctx, ReadOptions{}, func(b Batch) (int, error) { shown += len(b.Items); return len(b.Items), nil })
		if err != nil || shown != 1 || !errors.Is(b.Unmarked, errno) {
			t.Errorf("%v: shown %d, unmarked %v: %v", errno, shown, b.Unmarked, err)
		}
		broken = false
		if b, err = bob.Read(ctx, ReadOptions{}, takeAll); err != nil || len(b.Items) != 3 || b.Unmarked != nil {
			t.Errorf("%v: %d in the end, %v: %v", errno, len(b.Items), b.Unmarked, err)
		}
	}
}

// A second copy in the way of a move goes to bad.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"inbox/cur", "inbox/done/", "inbox/withdrawn"} {
		s := openStore(t, scratch(t), nil, "bob")
		bob := s.Box("bob")
		m := message("alice", "first")
		m.RequiresAck = place == "inbox/cur"
		where := place
		if place == "inbox/done/" {
			where += m.ID.Day()
		}
		put(t, bob, where, m)
		m.Body = "second"
		put(t, bob, "inbox/new", m)
		var err error
		if place == "inbox/withdrawn" {
			_, err = bob.Withdraw(ctx, m.ID, m.From)
		} else {
			_, err = bob.Read(ctx, ReadOptions{}, takeAll)
		}
		c := takeCensus(t, teamPath(s), "bob")
		c.sound(t)
		if err != nil || len(c.bad) != 1 || c.texts[m.ID] == nil || c.texts[m.ID].Body != "first" {
			t.Errorf("%s: bad %q, %v: %v", place, c.bad, c.places, err)
		}
		bad, _ := bob.BadFiles(0)
		if len(bad) != 1 || bad[0].Reason != "a duplicate of the message in "+where {
			t.Errorf("%s: %v", place, bad)
		}
	}
}

// Two readers at once: each message goes to one, and none is missed.
func TestReadersShare(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, nil, "bob")
	bob := s.Box("bob")
	const n = 120
	for i := range n {
		put(t, bob, "inbox/new", message("alice", fmt.Sprint(i)))
	}
	var mu sync.Mutex
	read := map[wire.ID]int{}
	var all sync.WaitGroup
	for range 4 {
		b := openStore(t, path, nil).Box("bob")
		all.Go(func() {
			for {
				batch, err := b.Read(ctx, ReadOptions{Limit: 7}, takeAll)
				if err != nil || batch.Unmarked != nil {
					t.Error(err, batch.Unmarked)
					return
				}
				if len(batch.Items) == 0 {
					return
				}
				mu.Lock()
				for _, it := range batch.Items {
					read[it.ID]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(read) != n {
		t.Errorf("%d read of %d", len(read), n)
	}
	for id, times := range read {
		if times != 1 {
			t.Errorf("%s was read %d times", id, times)
		}
	}
	takeCensus(t, path, "bob").sound(t)
}

// Nothing at all is done for an agent that is not there.
func TestNobody(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	for _, name := range []wire.Name{"nobody", "..", ".", "", "../x", ".locks", "bob/inbox", "all"} {
		b := s.Box(name)
		p := &Post{Message: message("alice", "x"), To: []*Box{b}}
		Deliver(ctx, p)
		_, err1 := b.Read(ctx, ReadOptions{}, takeAll)
		_, err2 := b.Peek(ctx, ReadOptions{})
		_, err3 := b.Count(ctx)
		_, err4 := b.TakeIn(ctx)
		_, err5 := b.Get(p.Message.ID)
		_, err6 := b.Unread(ctx, p.Message.ID)
		_, err7 := s.Retire(ctx, name)
		for i, err := range []error{p.Outcomes[0].Err, err1, err2, err3, err4, err5, err6, err7, b.Settle(ctx, p.Message.ID, true)} {
			if err == nil {
				t.Errorf("%q, call %d: no error", name, i)
			} else if name == "nobody" && !errors.Is(err, ErrNoAgent) {
				t.Errorf("%q, call %d: %v", name, i, err)
			}
		}
		if b.Exists() {
			t.Errorf("%q is there", name)
		}
	}
	entries, err := os.ReadDir(teamPath(s))
	if err != nil || len(entries) != 2 {
		t.Error(entries, err)
	}
	if locks := filesIn(t, filepath.Join(teamPath(s), ".locks"), nil); !slices.Equal(locks, []string{"team"}) {
		t.Errorf("lock files %q", locks)
	}
}
