package teams

import (
	"testing"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Send is all that an answer needs: it marks what it answers, and under one name it is one message.
func TestSend(t *testing.T) {
	r := newRoot(t)
	team := newTeam(t, r, "alice", "bob")
	alice, bob := team.Box("alice"), team.Box("bob")
	question := &wire.Message{Body: "?", RequiresAck: true}
	must(t, r.Send(t.Context(), &Outgoing{From: alice, To: []wire.Address{bob.Address()}, Message: question}))
	for range 2 {
		answer := &Outgoing{
			From: bob, To: []wire.Address{alice.Address()}, Parent: question, Message: &wire.Message{Body: "!"}, Once: "answer",
		}
		must(t, r.Send(t.Context(), answer))
	}
	if got := unreadOf(t, team, "alice"); len(got) != 1 || got[0] != "!" {
		t.Errorf("alice got %q", got)
	}
	it, err := bob.Get(question.ID)
	must(t, err)
	if it.State != mailbox.Done {
		t.Errorf("the question is %s, not acknowledged", it.State)
	}
	// Without a Prepare before, too.
	for name, send := range map[string]func(*Outgoing) error{
		"Deliver": func(o *Outgoing) error { return r.Deliver(t.Context(), o) },
		"Send":    func(o *Outgoing) error { return r.Send(t.Context(), o) },
	} {
		must(t, send(&Outgoing{From: alice, To: []wire.Address{bob.Address()}, Message: &wire.Message{Body: name}}))
	}
	if got := unreadOf(t, team, "bob"); len(got) != 2 {
		t.Errorf("bob got %q", got)
	}
}
