package app

import (
	"os"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// Of a member that is retired meanwhile nothing is known.
func TestForecastUnknown(t *testing.T) {
	s := newScope(t)
	to := teamdir.Recipient{Address: wire.Address{Agent: "bob", Team: "main"}}
	if _, got := Forecast(s.Root, to, &wire.Message{}); got != "unknown" {
		t.Errorf("%q", got)
	}
}

// The gate mentions a restore only for a retired member.
func TestGateOfMissing(t *testing.T) {
	s := newScope(t, "bob", "carol")
	toBob, toCarol := s.send(t, "alice", "bob", nil), s.send(t, "alice", "carol", nil)
	_, err := s.Team.Retire(t.Context(), "bob")
	must(t, err)
	must(t, os.RemoveAll(s.Team.Box("carol").Path()))
	for m, want := range map[*wire.Message]string{
		toBob:   "bob@main is retired; its mail is kept: atm team restore bob --team main",
		toCarol: "carol@main has no mailbox here: atm team",
	} {
		if got := TraceOf(t.Context(), s.Root, m, m.To[0]); got.Gate != want {
			t.Errorf("%+v", got)
		}
	}
}
