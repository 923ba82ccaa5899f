package watcher

import (
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

func TestEventsAreFromNowOrFromASequenceNumber(t *testing.T) {
	s := openStore(t, testtree.Memory(t), "bob", "carol")
	bob, carol := s.Box("bob"), s.Box("carol")
	for _, b := range []*maildir.Box{bob, carol} {
		for range 3 {
			appendEvent(t, b, "old")
		}
	}
	w := watch(t, Options{Events: true, After: map[wire.Address]uint64{{Agent: "carol", Team: "main"}: 1}}, bob, carol)
	for _, want := range []string{"old 2", "old 3"} {
		if e := next(t, w); e.Address.Agent != "carol" || word(e) != want {
			t.Fatal(e.Address, word(e))
		}
	}
	appendEvent(t, bob, "new")
	if e := next(t, w); e.Address.Agent != "bob" || word(e) != "new 4" {
		t.Fatal(e.Address, word(e))
	}
}
