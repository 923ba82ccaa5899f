package teams

import (
	"os"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// The answer of a retired member is still found, and the gate mentions a restore only for a retired one.
func TestTraceToMissing(t *testing.T) {
	r := newRoot(t)
	team := newTeam(t, r, "alice", "bob", "carol")
	send := func(from, to wire.Name, parent *wire.Message) *wire.Message {
		o := &Outgoing{From: team.Box(from), To: []wire.Address{team.Box(to).Address()}, Message: &wire.Message{Body: string(from)}, Parent: parent}
		_, err := r.Send(t.Context(), o)
		must(t, err)
		return o.Message
	}
	toBob, toCarol := send("alice", "bob", nil), send("alice", "carol", nil)
	send("bob", "alice", toBob)
	_, err := team.Retire(t.Context(), "bob")
	must(t, err)
	must(t, os.RemoveAll(team.Box("carol").Path()))
	for m, want := range map[*wire.Message]struct {
		replied bool
		gate    string
	}{
		toBob:   {true, "bob@main is retired; its mail is kept: atm team restore bob --team main"},
		toCarol: {false, "carol@main has no mailbox here: atm team"},
	} {
		got := r.Trace(t.Context(), m, m.To[0])
		if got.Gate != want.gate || got.Reached("replied") != want.replied || got.Reached("stored") {
			t.Errorf("%+v", got)
		}
		if at := got.stage("replied").At; want.replied && time.Since(*at) > time.Hour {
			t.Errorf("replied at %v", at)
		}
	}
}
