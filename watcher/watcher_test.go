package watcher

import (
	"context"
	"os"
	"testing"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// children are what the test binary does when it is started as another
// process.
var children = map[string]func(){}

func TestMain(m *testing.M) {
	if f := children[os.Getenv("ATM_WATCHER_TEST")]; f != nil {
		f()
		return
	}
	os.Exit(m.Run())
}

// openStore is a team in a directory, with some agents.
func openStore(t testing.TB, path string, agents ...wire.Name) *mailbox.Store {
	t.Helper()
	d, err := atomicfile.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Make(".locks")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s, err := mailbox.OpenStore(d, "main")
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
