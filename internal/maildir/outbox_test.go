package maildir_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// If the directories of a new outbox could not be synced, the next message syncs them.
func TestOutboxIsSynced(t *testing.T) {
	syncs, fails := 0, true
	s := faultyStore(t, func(op, name string) error {
		if op != "fsync directory" || filepath.Base(name) != maildir.BridgeDir {
			return nil
		}
		if syncs++; fails {
			return syscall.EIO
		}
		return nil
	})
	bob := s.Outbox(wire.Address{Agent: "bob", Host: "build"})
	deliver := func() error {
		p := &maildir.Post{Message: &wire.Message{ID: wire.NewID(), From: addr("alice"), To: []wire.Address{bob.Address()}}, To: []*maildir.Box{bob}}
		maildir.Deliver(t.Context(), p)
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
