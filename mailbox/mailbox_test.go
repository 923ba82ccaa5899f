package mailbox

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// The errors that callers tell apart.
func TestErrors(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "main", "bob")
	is := func(about string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, not %v", about, err, want)
		}
	}
	_, err := Open(dir)
	is("open nothing", err, ErrNoMailbox)
	bob, err := Create(ctx, dir)
	is("create", err, nil)
	t.Cleanup(func() { bob.Close() })
	_, err = Create(ctx, dir)
	is("create again", err, ErrExists)
	_, err = Open(filepath.Join(filepath.Dir(dir), "carol"))
	is("open nobody's", err, ErrNoMailbox)

	alice, carol := wire.Address{Agent: "alice", Team: "main"}, wire.Address{Agent: "carol", Team: "main"}
	out, err := bob.Deliver(ctx, wire.Message{From: alice, Body: "hi"})
	is("deliver", err, nil)
	_, err = bob.Deliver(ctx, wire.Message{ID: out.ID, From: carol, Body: "hi"})
	is("another of that id", err, ErrIDTaken)
	if _, err = bob.Deliver(ctx, wire.Message{From: alice, Body: "a\x00b"}); err == nil {
		t.Error("a NUL was delivered")
	}
	_, err = bob.Get(wire.NewID())
	is("get nothing", err, ErrNotFound)

	// What fails stays unread, and what is withdrawn is not read.
	failed := errors.New("failed")
	is("a failed read", bob.Read(ctx, 0, func(*wire.Message) error { return failed }), failed)
	if it, err := bob.Get(out.ID); err != nil || it.State != Unread {
		t.Error(it.State, err)
	}
	if state, err := bob.Withdraw(ctx, out.ID, alice); err != nil || state != Unread {
		t.Error(state, err)
	}
	is("a read", bob.Read(ctx, 0, func(m *wire.Message) error { return errors.New("it was shown: " + m.Body) }), nil)
	n := 0
	for it, err := range bob.List(ctx, Withdrawn) {
		is("list", err, nil)
		if n++; it.ID != out.ID {
			t.Error(it.ID)
		}
	}
	if n != 1 {
		t.Errorf("%d withdrawn", n)
	}
}
