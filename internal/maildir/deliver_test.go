package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/wire"
)

// A failure at one recipient does not affect the others.
func TestDeliverToManyOfWhichSomeFail(t *testing.T) {
	t.Parallel()
	s := faultyStore(t, func(op, name string) error {
		switch {
		case op == "open" && strings.HasPrefix(name, "full/inbox/tmp/"):
			return syscall.EDQUOT
		case op == "rename" && strings.HasPrefix(name, "fixed/"):
			return syscall.EIO
		case op == "fsync directory" && name == "syncless/inbox/new":
			return syscall.EIO
		}
		return nil
	}, "full", "good", "fixed", "syncless", "last", "alice")
	m := message("x")
	p := &maildir.Post{Message: m, Sender: s.Box("alice")}
	for _, a := range []wire.Name{"full", "nobody", "good", "fixed", "syncless", "last"} {
		p.To = append(p.To, s.Box(a))
	}
	maildir.Deliver(ctx, p)
	want := []struct {
		stored bool
		err    error
	}{{false, syscall.EDQUOT}, {false, maildir.ErrNoMailbox}, {true, nil}, {false, syscall.EIO}, {true, syscall.EIO}, {true, nil}}
	for i, o := range p.Outcomes {
		if o.Box != p.To[i] || o.IsStored != want[i].stored || o.WasDelivered || !errors.Is(o.Err, want[i].err) || o.Err != nil && want[i].err == nil {
			t.Errorf("%s: %+v", p.To[i].Agent(), o)
		}
		if there := o.Box.Exists() && takeCensus(t, o.Box).place(m.ID) == "new"; there != o.IsStored {
			t.Errorf("%s: there %v, stored %v", o.Box.Agent(), there, o.IsStored)
		}
	}
	var nd *maildir.NotDurableError
	if err := p.Outcomes[4].Err; !errors.As(err, &nd) || nd.ID != m.ID || !strings.Contains(err.Error(), "stored, but may not survive a power cut (fsync directory") {
		t.Error(err)
	}
	if sent, err := s.Box("alice").Sent(m.ID); err != nil || sent.Body != "x" {
		t.Error(sent, err)
	}
}

// If a mailbox exists but cannot be written to, the error says why, not that it is absent.
func TestDeliverSaysTheCause(t *testing.T) {
	t.Parallel()
	bob := faultyStore(t, func(op, name string) error {
		if op == "mkdir" && name == "bob/inbox/tmp" {
			return syscall.EIO
		}
		return nil
	}).Box("bob")
	write(t, filepath.Join(bob.Path(), "inbox/new/x"), "")
	if o := post(bob, message("x"), false); !errors.Is(o.Err, syscall.EIO) || errors.Is(o.Err, maildir.ErrNoMailbox) {
		t.Error(o.Err)
	}
}

// A message is synced before it is renamed, and its directory after. A batch syncs each directory once and keeps its
// order, and an error of one post does not affect the others.
func TestDeliverBatch(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var ops []string
	s := faultyStore(t, func(op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "rename" || strings.HasPrefix(op, "fsync") {
			ops = append(ops, op)
		}
		return nil
	}, "bob", "carol")
	bob, carol := s.Box("bob"), s.Box("carol")
	ops = nil
	deliver(t, bob, message("x"))
	equal(t, "operations", ops, "fsync", "rename", "fsync directory")
	ops = nil
	var posts []*maildir.Post
	var want []wire.ID
	for i := range 20 {
		p := &maildir.Post{Message: message(fmt.Sprint(i)), To: []*maildir.Box{bob, carol}[:1+i%2]}
		if i%3 == 0 {
			p.Message.Body = "\xff"
		} else {
			want = append(want, p.Message.ID)
		}
		posts = append(posts, p)
	}
	maildir.Deliver(ctx, posts...)
	n := map[string]int{}
	for _, op := range ops {
		n[op]++
	}
	if n["fsync directory"] != 2 || n["fsync"] != 13+7 || n["rename"] != 13+7 {
		t.Error(n)
	}
	for i, p := range posts {
		if (p.Outcomes[0].Err == nil) != (i%3 != 0) {
			t.Errorf("%d: %v", i, p.Outcomes[0].Err)
		}
	}
	equal(t, "read", read(t, bob)[1:], want...)
}

// A torn file is not a message: delivering again with the same id moves it to bad, wherever it is.
func TestDeliverAgainOverATornFile(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"new", "cur", "done"} {
		bob, m := newBob(t), message("whole")
		m.RequiresAck = where == "cur"
		deliver(t, bob, m)
		if where != "new" {
			read(t, bob)
		}
		it, err := bob.Get(m.ID)
		must(t, err)
		file, before := it.File, time.Now().Add(-time.Minute)
		must(t, errors.Join(os.Truncate(file, 60), os.Chtimes(file, before, before)))
		if o := post(bob, m, true); o.Err != nil || o.WasDelivered {
			t.Errorf("torn in %s: %+v", where, o)
		}
		if o := post(bob, m, true); o.Err != nil || !o.WasDelivered {
			t.Errorf("torn in %s, once more: %+v", where, o)
		}
		bad, _ := drop.BadFiles(bob)
		if equal(t, where, read(t, bob), m.ID); len(bad) != 1 {
			t.Errorf("torn in %s: %v", where, bad)
		}
	}
}
