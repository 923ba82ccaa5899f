package watcher

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

func TestEventsAreFromNowOrFromASequenceNumber(t *testing.T) {
	s := openStore(t, memoryDir(t), "bob", "carol")
	bob, carol := s.Box("bob"), s.Box("carol")
	for _, b := range []*mailbox.Box{bob, carol} {
		for range 3 {
			appendEvent(t, b, "old")
		}
	}
	w := watch(t, Options{Events: true, After: map[wire.Address]uint64{{Agent: "carol", Team: "main"}: 1}}, bob, carol)
	for _, want := range []string{"old 2", "old 3"} {
		if e := next(t, w); e.Agent != "carol" || word(e) != want {
			t.Fatal(e.Agent, word(e))
		}
	}
	appendEvent(t, bob, "new")
	if e := next(t, w); e.Agent != "bob" || word(e) != "new 4" {
		t.Fatal(e.Agent, word(e))
	}
}

func TestGapIsSaid(t *testing.T) {
	_, bob := bobs(t)
	w := watch(t, Options{Events: true}, bob)
	appendEvent(t, bob, "one")
	expect(t, w, "one 1")
	// Two events come, and the first is damaged before anybody reads it.
	w.mu.Lock()
	appendEvent(t, bob, "two")
	appendEvent(t, bob, "three")
	log := filepath.Join(bob.Path(), "events", "00000000000000000001.ndjson")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, []byte(`{"seq":2`), []byte(`#"seq":2`), 1)
	if err := os.WriteFile(log, data, 0o600); err != nil {
		t.Fatal(err)
	}
	w.mu.Unlock()
	expect(t, w, "gap 2-2 three 3")
}
