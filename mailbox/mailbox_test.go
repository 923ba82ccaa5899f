package mailbox

import (
	"context"
	"testing"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// testStore is a team in a temporary directory with some agents.
func testStore(t testing.TB, agents ...wire.Name) *Store {
	t.Helper()
	return openStore(t, t.TempDir(), nil, agents...)
}

func openStore(t testing.TB, path string, fault atomicfile.Fault, agents ...wire.Name) *Store {
	t.Helper()
	d, err := atomicfile.Open(path, fault)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := d.Make(".locks"); err != nil {
		t.Fatal(err)
	} else {
		l.Close()
	}
	s, err := OpenStore(d, "main")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, a := range agents {
		if err := s.Create(context.Background(), a); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func message(from wire.Name, body string) *wire.Message {
	return &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: from, Team: "main"}, Body: body}
}

// deliver delivers one message to one mailbox and fails the test if that fails.
func deliver(t tb, b *Box, m *wire.Message) {
	t.Helper()
	p := &Post{Message: m, To: []*Box{b}}
	Deliver(context.Background(), p)
	if err := p.Outcomes[0].Err; err != nil {
		t.Fatal(err)
	}
}

var ctx = context.Background()

// gone is an id of the past.
const gone = "01900000-0000-7000-8000-0000000000aa"

func takeAll(b Batch) (int, error) { return len(b.Items), nil }

func TestDeliverAndRead(t *testing.T) {
	s := testStore(t, "alice", "bob")
	bob := s.Box("bob")
	m := message("alice", "hello")
	deliver(t, bob, m)
	batch, err := bob.Read(context.Background(), ReadOptions{}, takeAll)
	if err != nil || len(batch.Items) != 1 || batch.Items[0].Body != "hello" {
		t.Fatal(batch, err)
	}
	it, err := bob.Get(m.ID)
	if err != nil || it.State != Done {
		t.Fatal(it, err)
	}
	batch, err = bob.Read(context.Background(), ReadOptions{}, takeAll)
	if err != nil || len(batch.Items) != 0 {
		t.Fatal(batch, err)
	}
	events, err := bob.Tail(1)
	if err != nil || len(events) != 1 || events[0].MessageID() != m.ID {
		t.Fatal(events, err)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
