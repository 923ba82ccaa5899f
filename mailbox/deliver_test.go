package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// What could not be read back is refused before anything is written.
func TestDeliverChecks(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	for about, edit := range map[string]func(*wire.Message){
		"no sender":                   func(m *wire.Message) { m.From = wire.Address{} },
		"a sender that is no name":    func(m *wire.Message) { m.From.Agent = "../x" },
		"an addressee that is none":   func(m *wire.Message) { m.To = []wire.Address{{Agent: "a b", Team: "main"}} },
		"no id":                       func(m *wire.Message) { m.ID = "" },
		"an id that leads away":       func(m *wire.Message) { m.ID = "../../../../../../../../../../../../x" },
		"an id of version 4":          func(m *wire.Message) { m.ID = "01900000-0000-4000-8000-000000000000" },
		"a thread that is no id":      func(m *wire.Message) { m.Thread = "x" },
		"a body that is not UTF-8":    func(m *wire.Message) { m.Body = "\xff" },
		"a NUL":                       func(m *wire.Message) { m.Body = "a\x00" },
		"a NUL in the subject":        func(m *wire.Message) { m.Subject = "a\x00" },
		"a body too long":             func(m *wire.Message) { m.Body = strings.Repeat("x", wire.MaxBody+1) },
		"a message too long":          func(m *wire.Message) { m.Body = strings.Repeat("\x01", wire.MaxBody) },
		"a priority nobody knows":     func(m *wire.Message) { m.Priority = "high" },
		"a time beyond all":           func(m *wire.Message) { m.DueAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"a payload that is no JSON":   func(m *wire.Message) { m.Payload = []byte("{") },
		"a payload that is no object": func(m *wire.Message) { m.Payload = []byte("5") },
		"an attachment without hash":  func(m *wire.Message) { m.Attachments = []wire.Attachment{{Name: "x"}} },
	} {
		m := message("alice", "x")
		edit(m)
		p := &Post{Message: m, To: []*Box{bob}}
		Deliver(ctx, p)
		if o := p.Outcomes[0]; o.Err == nil || o.Stored {
			t.Errorf("%s: %+v", about, o)
		}
	}
	if c := takeCensus(t, teamPath(s), "bob"); len(c.places)+len(c.tmp)+len(c.bad) > 0 {
		t.Error(c.places, c.tmp, c.bad)
	}
	m := message("alice", strings.Repeat("é", wire.MaxBody/2))
	deliver(t, bob, m)
	if it, err := bob.Get(m.ID); err != nil || it.Body != m.Body {
		t.Error(err)
	}
}

// One recipient's failure is that one's alone.
func TestDeliverToManyOfWhichSomeFail(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, func(op atomicfile.Op, name string) error {
		switch {
		case op == atomicfile.OpCreate && strings.Contains(name, "/first/"):
			return syscall.EDQUOT
		case op == atomicfile.OpLink && strings.Contains(name, "/linkless/"):
			return syscall.EIO
		case op == atomicfile.OpSyncDir && strings.Contains(name, "/syncless/"):
			return syscall.EIO
		}
		return nil
	}, "first", "good", "linkless", "syncless", "last", "alice")
	os.Chmod(filepath.Join(path, "last", "inbox", "new"), 0o700)
	m := message("alice", "x")
	p := &Post{Message: m, Sender: s.Box("alice")}
	for _, a := range []wire.Name{"first", "nobody", "good", "linkless", "syncless", "last"} {
		p.To = append(p.To, s.Box(a))
	}
	Deliver(ctx, p)
	want := []struct {
		stored bool
		err    error
	}{{false, syscall.EDQUOT}, {false, ErrNoAgent}, {true, nil}, {false, syscall.EIO}, {true, syscall.EIO}, {true, nil}}
	for i, o := range p.Outcomes {
		if o.Box != p.To[i] || o.Stored != want[i].stored || o.Known || !errors.Is(o.Err, want[i].err) || o.Err != nil && want[i].err == nil {
			t.Errorf("%s: %+v", p.To[i].Agent(), o)
		}
		there := o.Box.Exists() && len(takeCensus(t, path, o.Box.Agent()).places) == 1
		if there != o.Stored {
			t.Errorf("%s: there %v, stored %v", o.Box.Agent(), there, o.Stored)
		}
	}
	var nd *NotDurableError
	if err := p.Outcomes[4].Err; !errors.As(err, &nd) || nd.ID != m.ID || !strings.Contains(err.Error(), "stored, not known to survive a power cut (fsync directory") {
		t.Error(err)
	}
	if sent, err := s.Box("alice").Sent(m.ID); err != nil || sent.Body != "x" {
		t.Error(sent, err)
	}
}

// A fan-out shares one file and one sync; a batch syncs each directory once.
func TestDeliverSharesSyncs(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	count := map[atomicfile.Op]int{}
	s := openStore(t, scratch(t), func(op atomicfile.Op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		count[op]++
		return nil
	}, "a", "b", "c", "alice")
	to := []*Box{s.Box("a"), s.Box("b"), s.Box("c")}
	clear(count)
	Deliver(ctx, &Post{Message: message("alice", "x"), To: to, Sender: s.Box("alice")})
	if count[atomicfile.OpCreate] != 1 || count[atomicfile.OpSync] != 1 || count[atomicfile.OpSyncDir] != 3 || count[atomicfile.OpLink] != 4 {
		t.Errorf("fan-out: %v", count)
	}
	clear(count)
	var posts []*Post
	for i := range 10 {
		posts = append(posts, &Post{Message: message("alice", fmt.Sprint(i)), To: to[:1+i%2]})
	}
	Deliver(ctx, posts...)
	if count[atomicfile.OpSync] != 10 || count[atomicfile.OpSyncDir] != 2 {
		t.Errorf("batch: %v", count)
	}
	// And everything is there, in the order given.
	b, err := to[0].Read(ctx, ReadOptions{}, takeAll)
	if err != nil || len(b.Items) != 11 {
		t.Fatal(len(b.Items), err)
	}
	for i, it := range b.Items[1:] {
		if it.Body != fmt.Sprint(i) {
			t.Errorf("%d is %q", i, it.Body)
		}
	}
}

// A post in a job of many, each of which is everything that fails and holds
// nothing of the others up.
func TestDeliverBatchOfGoodAndBad(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	var posts []*Post
	for i := range 20 {
		m := message("alice", fmt.Sprint(i))
		if i%3 == 0 {
			m.Body = "\xff"
		}
		posts = append(posts, &Post{Message: m, To: []*Box{bob}})
	}
	Deliver(ctx, posts...)
	for i, p := range posts {
		if (p.Outcomes[0].Err == nil) != (i%3 != 0) {
			t.Errorf("%d: %v", i, p.Outcomes[0].Err)
		}
	}
	if n := len(takeCensus(t, teamPath(s), "bob").places); n != 13 {
		t.Errorf("%d messages", n)
	}
}

// An id that was given is looked for in every place, also in the archive.
func TestDeliverGivenIsLookedFor(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"inbox/new", "inbox/cur", "inbox/done/", "inbox/withdrawn", "../.archive/bob/done/"} {
		s := openStore(t, scratch(t), nil, "bob")
		bob := s.Box("bob")
		m := message("alice", "x")
		m.ID = oldID(40)
		if strings.HasSuffix(where, "/") {
			where += m.ID.Day()
		}
		put(t, bob, where, m)
		p := &Post{Message: m, To: []*Box{bob}, Given: true}
		Deliver(ctx, p)
		if o := p.Outcomes[0]; o.Err != nil || !o.Known || !o.Stored {
			t.Errorf("%s: %+v", where, o)
		}
		takeCensus(t, teamPath(s), "bob").sound(t)
	}
}

// A lock that is held is named, with its holder, and waited for no longer than
// told.
func TestLockIsHeld(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, nil, "bob")
	s.LockTimeout = 50 * time.Millisecond
	bob := s.Box("bob")
	m := message("alice", "x")
	deliver(t, bob, m)
	do := map[string][]func() error{
		"bob.inbox": {
			func() error {
				p := &Post{Message: message("alice", "x"), To: []*Box{bob}}
				Deliver(ctx, p)
				return p.Outcomes[0].Err
			},
			func() error { _, err := bob.Unread(ctx, m.ID); return err },
			func() error { _, err := s.Retire(ctx, "bob"); return err },
		},
		"bob.reader": {
			func() error { _, err := bob.Read(ctx, ReadOptions{}, takeAll); return err },
			func() error { _, err := bob.Take(ctx, m.ID); return err },
			func() error { return bob.Settle(ctx, m.ID, true) },
			func() error { _, err := bob.GC(ctx, GCOptions{}); return err },
			func() error { _, err := bob.Withdraw(ctx, m.ID, m.From); return err },
			func() error { _, err := bob.List(ctx); return err },
		},
		"bob.events": {func() error { return bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "a"}) }},
		"team":       {func() error { return s.Create(ctx, "new") }, func() error { return s.Restore(ctx, "bob") }},
	}
	for name, calls := range do {
		held, err := s.locks.Lock(ctx, name, lockfile.Exclusive, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range calls {
			err := f()
			var he *lockfile.HeldError
			if !errors.As(err, &he) || he.Lock != name {
				t.Errorf("%s, call %d: %v", name, i, err)
			}
		}
		// Looking needs none.
		if b, err := bob.Peek(ctx, ReadOptions{}); err != nil || len(b.Items) != 1 {
			t.Error(b, err)
		}
		if n, err := bob.Count(ctx); err != nil || n.Unread != 1 {
			t.Error(n, err)
		}
		held.Unlock()
	}
	if c := takeCensus(t, path, "bob"); !slices.Equal(c.ids(), []wire.ID{m.ID}) || c.place(m.ID) != placeNew {
		t.Error(c.places)
	}
}
