package inbox

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// Many files that are not messages are moved to bad in portions, and hide no message that is behind them.
func TestManyBadFiles(t *testing.T) {
	root, err := durable.Open(t.TempDir())
	if err == nil {
		err = root.MkdirAll(".locks")
	}
	if err != nil {
		t.Fatal(err)
	}
	store := maildir.NewStore(root, "main")
	t.Cleanup(func() { store.Close() })
	if err := store.Create(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	bob := store.Box("bob")
	unread := filepath.Join(bob.Path(), "inbox/new")
	const bad = 200
	for range bad {
		file, settled := filepath.Join(unread, string(wire.NewID())+".json"), time.Now().Add(-time.Minute)
		err := os.WriteFile(file, []byte("no JSON"), 0o600)
		if err = cmp.Or(err, os.Chtimes(file, settled, settled)); err != nil {
			t.Fatal(err)
		}
	}
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, To: []wire.Address{bob.Address()}, SentAt: time.Now().UTC(), Body: "good"}
	post := &maildir.Post{Message: m, To: []*maildir.Box{bob}}
	if maildir.Deliver(t.Context(), post); post.Outcomes[0].Err != nil {
		t.Fatal(post.Outcomes[0].Err)
	}
	moveBadTime = 0
	t.Cleanup(func() { moveBadTime = time.Second })
	all := func(b Batch) (int, error) { return len(b.Items), nil }
	batch, err := Read(t.Context(), bob, ReadOptions{Limit: 20}, all)
	if err != nil || len(batch.Items) != 1 || batch.Items[0].ID != m.ID {
		t.Errorf("%d read, %v", len(batch.Items), err)
	}
	if left, err := os.ReadDir(unread); err != nil || len(left) != bad {
		t.Errorf("%d left, without time to move any: %v", len(left), err)
	}
	moveBadTime = time.Hour
	if batch, err = Read(t.Context(), bob, ReadOptions{}, all); err != nil || batch.Bad != bad {
		t.Errorf("%d of %d moved to bad, %v", batch.Bad, bad, err)
	}
}
