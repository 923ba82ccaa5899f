package teamdir

import (
	"os"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// The answer of a retired member is still found.
func TestTraceToMissing(t *testing.T) {
	r := newRoot(t, nil)
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
	for m, hasReplied := range map[*wire.Message]bool{toBob: true, toCarol: false} {
		got := r.Answers(t.Context(), m).Trace(m, m.To[0])
		if got.Err == nil || got.Reached("replied") != hasReplied || got.Reached("stored") {
			t.Errorf("%+v", got)
		}
		if at := got.stage("replied").At; hasReplied && time.Since(*at) > time.Hour {
			t.Errorf("replied at %v", at)
		}
	}
}
