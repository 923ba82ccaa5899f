package mailbox

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/atomicfile"
)

// One file that the disk does not give hides no other, and stays where it is.
func TestOneUnreadableFile(t *testing.T) {
	broken := ""
	fault := func(op atomicfile.Op, name string) error {
		if op == atomicfile.OpRead && broken != "" && strings.Contains(name, broken) {
			return syscall.EIO
		}
		return nil
	}
	s := openStore(t, t.TempDir(), fault, "alice", "bob")
	bob := s.Box("bob")
	first, second := message("alice", "first"), message("alice", "second")
	deliver(t, bob, first)
	deliver(t, bob, second)
	broken = string(first.ID)
	batch, err := bob.Read(context.Background(), ReadOptions{}, takeAll)
	if err != nil || len(batch.Items) != 1 || batch.Items[0].ID != second.ID || batch.Unreadable != 1 {
		t.Fatalf("%+v, %v", batch, err)
	}
	broken = ""
	batch, err = bob.Read(context.Background(), ReadOptions{}, takeAll)
	if err != nil || len(batch.Items) != 1 || batch.Items[0].ID != first.ID {
		t.Fatalf("%+v, %v", batch, err)
	}
}
