package mail

import (
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// One holds what is in one's inbox, and what one has taken: not what others have, nor what one has sent.
func TestFindHeld(t *testing.T) {
	s := newScope(t)
	jobs := s.Team.Box("carol")
	must(t, claim.Share(jobs))
	take := func(by wire.Name) {
		t.Helper()
		_, err := claim.Lease(t.Context(), jobs, s.Team.Box(by).Address(), time.Hour, inbox.ReadOptions{}, func(*wire.Item, wire.Lease) (bool, error) { return true, nil })
		must(t, err)
	}
	mine := deliverTo(t, s, "bob", wire.Message{Body: "mine"}, "alice")
	taken := deliverTo(t, s, "bob", wire.Message{Body: "taken"}, "carol")
	take("alice")
	others := deliverTo(t, s, "bob", wire.Message{Body: "taken by somebody else"}, "carol")
	take("me")
	free := deliverTo(t, s, "bob", wire.Message{Body: "nobody has it"}, "carol")
	sent := deliverTo(t, s, "alice", wire.Message{Body: "sent"}, "bob")
	for _, tt := range []struct {
		m        *wire.Message
		isHeld   bool
		isLeased bool
	}{{mine, true, false}, {taken, true, true}, {others, false, false}, {free, false, false}, {sent, false, false}} {
		held, err := findHeld(t.Context(), s, string(tt.m.ID))
		if (err == nil) != tt.isHeld || held.IsLeased != tt.isLeased {
			t.Errorf("%s: leased %v, %v", tt.m.Body, held.IsLeased, err)
		}
	}
	must(t, claim.EndLease(t.Context(), jobs, taken.ID, s.Me.Address()))
	if _, err := findHeld(t.Context(), s, string(taken.ID)); err == nil {
		t.Error("what was given back is held")
	}
}
