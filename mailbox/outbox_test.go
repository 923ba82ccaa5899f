package mailbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// Mail for several members on one host is one file in its outbox, which is removed when it has been sent.
func TestOutbox(t *testing.T) {
	s := newStore(t)
	bob, carol := s.Outbox(wire.Address{Agent: "bob", Host: "build"}), s.Outbox(wire.Address{Agent: "carol", Host: "build"})
	if items, err := bob.Outgoing(); err != nil || len(items) > 0 {
		t.Fatalf("before the first: %v, %v", items, err)
	}
	var sent []wire.ID
	for range 3 {
		m := &wire.Message{ID: wire.NewID(), From: addr("alice"), To: []wire.Address{bob.Address(), carol.Address()}, Body: "hi"}
		p := &Post{Message: m, To: []*Box{bob, carol}}
		Deliver(context.Background(), p)
		for i, o := range p.Outcomes {
			if o.Err != nil || o.AlreadyStored || !o.Stored || o.Box.Address() != m.To[i] {
				t.Fatalf("delivered to %s: %+v", m.To[i], o)
			}
		}
		sent = append(sent, m.ID)
	}
	names, _ := os.ReadDir(filepath.Join(bob.Path(), "new"))
	if boxes, err := s.Outboxes(); err != nil || len(boxes) != 1 || len(names) != 3 || filepath.Base(bob.Path()) != "build" {
		t.Errorf("%s has %v, %v: %v", bob.Path(), names, boxes, err)
	}
	take := func(limit int, want ...wire.ID) {
		t.Helper()
		listed, err := bob.Outgoing()
		if err != nil {
			t.Fatal(err)
		}
		if len(listed) > limit {
			listed = listed[:limit]
		}
		items, err := bob.TakeOutgoing(t.Context(), listed)
		var ids []wire.ID
		for _, it := range items {
			ids = append(ids, it.ID)
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("taken %v, want %v: %v", ids, want, err)
		}
	}
	withdraw := func(id wire.ID, want State) {
		t.Helper()
		if state, err := carol.WithdrawRead(t.Context(), id, addr("alice"), nil); err != nil || state != want {
			t.Errorf("withdrawn from %q, want %q: %v", state, want, err)
		}
	}
	take(1, sent[0])
	withdraw(sent[0], Owed) // it may have arrived
	withdraw(sent[1], Unread)
	withdraw(sent[1], Withdrawn)
	take(9, sent[0], sent[2])
	if err := bob.RemoveOutgoing(sent[0]); err != nil {
		t.Fatal(err)
	}
	take(9, sent[2])
	torn := wire.NewID()
	os.WriteFile(filepath.Join(bob.Path(), "new", string(torn)+".json"), []byte("{torn"), 0o600)
	if items, err := bob.TakeOutgoing(t.Context(), []wire.ID{torn, sent[2]}); err == nil || len(items) != 1 {
		t.Errorf("beside a torn one: %v, %v", items, err)
	}
}

// If the directories of a new outbox could not be synced, the next message syncs them.
func TestOutboxIsSynced(t *testing.T) {
	syncs, fails := 0, true
	s := openStore(t, scratch(t), func(op, name string) error {
		if op != "fsync directory" || filepath.Base(name) != BridgeDir {
			return nil
		}
		if syncs++; fails {
			return syscall.EIO
		}
		return nil
	})
	bob := s.Outbox(wire.Address{Agent: "bob", Host: "build"})
	deliver := func() error {
		p := &Post{Message: &wire.Message{ID: wire.NewID(), From: addr("alice"), To: []wire.Address{bob.Address()}}, To: []*Box{bob}}
		Deliver(t.Context(), p)
		return p.Outcomes[0].Err
	}
	if err := deliver(); !errors.Is(err, syscall.EIO) {
		t.Errorf("with a directory that cannot be synced: %v", err)
	}
	fails = false
	for range 2 {
		if err := deliver(); err != nil || syncs != 2 {
			t.Errorf("after that: %v, %d syncs", err, syncs)
		}
	}
}
