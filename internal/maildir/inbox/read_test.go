package inbox

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

func newBox(t *testing.T) *maildir.Box {
	t.Helper()
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
	return store.Box("bob")
}

func deliver(t *testing.T, bob *maildir.Box, body string) wire.ID {
	t.Helper()
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, To: []wire.Address{bob.Address()}, SentAt: time.Now().UTC(), Body: body}
	post := &maildir.Post{Message: m, To: []*maildir.Box{bob}}
	if maildir.Deliver(t.Context(), post); post.Outcomes[0].Err != nil {
		t.Fatal(post.Outcomes[0].Err)
	}
	return m.ID
}

// The first message that does not fit ends the batch: no later one is read before it.
func TestReadInOrder(t *testing.T) {
	t.Parallel()
	bob := newBox(t)
	for _, body := range []string{"a", "bb", "c", "ddd", "e"} {
		deliver(t, bob, body)
	}
	asked := 0
	fits := func(m *wire.Message) bool { asked++; return len(m.Body) == 1 }
	for _, opt := range []ReadOptions{{Fits: fits}, {Fits: fits, Current: true}, {Fits: fits, Match: func(*maildir.Item) bool { return true }}} {
		asked = 0
		batch, err := Peek(t.Context(), bob, opt)
		if err != nil || len(batch.Items) != 1 || batch.Items[0].Body != "a" || batch.More != 4 || asked != 2 {
			t.Errorf("%d items and %d more, %d asked, %v", len(batch.Items), batch.More, asked, err)
		}
	}
}

// Many files that are not messages are moved to bad in portions, and hide no message that is behind them.
func TestManyBadFiles(t *testing.T) {
	bob := newBox(t)
	unread := filepath.Join(bob.Path(), "inbox/new")
	const bad = 200
	for range bad {
		if err := os.WriteFile(filepath.Join(unread, string(wire.NewID())+".json"), []byte("no JSON"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := deliver(t, bob, "good")
	moveBadTime = 0
	t.Cleanup(func() { moveBadTime = time.Second })
	all := func(b Batch) (int, error) { return len(b.Items), nil }
	batch, err := Read(t.Context(), bob, ReadOptions{Limit: 20}, all)
	if err != nil || len(batch.Items) != 1 || batch.Items[0].ID != good {
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
