package post

import (
	"os"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// The answer of a retired member is still found.
func TestTraceToMissing(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob", "carol")
	send := func(from, to wire.Name, parent *wire.Message) *wire.Message {
		o := &Outgoing{From: team.Box(from), To: []wire.Address{team.Box(to).Address()}, Message: &wire.Message{Body: string(from)}, Parent: parent}
		_, err := Send(t.Context(), r, o)
		teamtest.Must(t, err)
		return o.Message
	}
	toBob, toCarol := send("alice", "bob", nil), send("alice", "carol", nil)
	send("bob", "alice", toBob)
	_, err := team.Retire(t.Context(), "bob")
	teamtest.Must(t, err)
	teamtest.Must(t, os.RemoveAll(team.Box("carol").Path()))
	for m, hasReplied := range map[*wire.Message]bool{toBob: true, toCarol: false} {
		got := AnswersTo(t.Context(), r, m).Trace(m, m.To[0])
		if got.Err == nil || got.Reached("replied") != hasReplied || got.Reached("stored") {
			t.Errorf("%+v", got)
		}
		if at := got.Stage("replied").At; hasReplied && time.Since(*at) > time.Hour {
			t.Errorf("replied at %v", at)
		}
	}
}
