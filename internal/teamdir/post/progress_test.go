package post

import (
	"os"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir/claim"
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
		if at := got.Stage("replied").At; hasReplied && time.Since(at) > time.Hour {
			t.Errorf("replied at %v", at)
		}
	}
}

// One value says it in a word, by the copy and by the answers, whatever one asks: ls, a message that waits for it, a repeated send.
func TestProgressWord(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob", "queue")
	alice, bob := team.Box("alice"), team.Box("bob")
	teamtest.Must(t, claim.Share(team.Box("queue")))
	check := func(m *wire.Message, word, outcome string) {
		t.Helper()
		p := AnswersTo(t.Context(), r, m).At(m, m.To[0])
		if got, _ := p.Outcome(); p.Word() != word || got != outcome {
			t.Errorf("%s, outcome %q; want %s, %q", p.Word(), got, word, outcome)
		}
	}
	send := func(to wire.Name, m *wire.Message) *wire.Message {
		teamtest.Must(t, sendTo(team, alice, to, m))
		return m
	}
	m := send("bob", &wire.Message{Body: "work", RequiresAck: true})
	check(m, "unread", "")
	teamtest.Must(t, bob.MarkRead(t.Context(), m.ID))
	check(m, "read", "")
	ackAs(t, team, m.ID, "blocked")
	check(m, "acked", "blocked")
	ackAs(t, team, m.ID, "done")
	check(m, "acked", "done")

	check(send("bob", &wire.Message{Body: "tomorrow", NotBefore: time.Now().Add(time.Hour)}), "later", "")
	back := send("bob", &wire.Message{Body: "no"})
	_, err := Withdraw(t.Context(), r, alice, back, bob.Address(), nil)
	teamtest.Must(t, err)
	check(back, "withdrawn", "withdrawn")

	asked := send("bob", &wire.Message{Body: "?", DueAt: time.Now().Add(time.Hour)})
	_, err = Send(t.Context(), r, &Outgoing{From: bob, To: []wire.Address{alice.Address()}, Parent: asked, Message: &wire.Message{Body: "!"}})
	teamtest.Must(t, err)
	check(asked, "answered", "")

	job := send("queue", &wire.Message{Body: "job"})
	_, err = GiveJob(t.Context(), team, "queue", bob.Address(), time.Minute, func(*wire.Item, wire.Lease) (bool, error) { return true, nil })
	teamtest.Must(t, err)
	check(job, "taken", "")

	lost := send("bob", &wire.Message{Body: "lost"})
	_, err = team.Retire(t.Context(), "bob")
	teamtest.Must(t, err)
	check(lost, "no evidence", "retired")
}
