package teams

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// take takes a message from an inbox for a member; "" if there is none.
func take(t *testing.T, box *mailbox.Box, by wire.Name) wire.ID {
	t.Helper()
	taker := wire.Address{Agent: by, Team: box.Address().Team}
	it, err := box.Lease(context.Background(), taker, time.Minute, mailbox.ReadOptions{}, func(*mailbox.Item, mailbox.Lease) (bool, error) { return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	if it == nil {
		return ""
	}
	return it.ID
}

// unreadOf returns the bodies of a member's unread messages.
func unreadOf(t *testing.T, team *Team, name wire.Name) (out []string) {
	t.Helper()
	if _, err := team.Box(name).Walk(context.Background(), mailbox.Range{Unread: true}, func(it *mailbox.Item) bool {
		out = append(out, it.Body)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Only the holder of a lease can acknowledge the message.
func TestAckTaken(t *testing.T) {
	ctx := context.Background()
	r := newRoot(t)
	team := newTeam(t, r, "alice", "bob", "carol", "jobs")
	jobs := team.Box("jobs")
	id := post(t, team, "alice", "jobs", "work")
	take(t, jobs, "bob")
	it, err := jobs.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	var leased *mailbox.LeasedError
	if _, err := r.Ack(ctx, jobs, &Outgoing{From: team.Box("carol"), Parent: it.Message, Message: &wire.Message{Body: ""}}); !errors.As(err, &leased) {
		t.Fatal(err)
	}
	if _, err := r.Ack(ctx, jobs, &Outgoing{From: jobs, Parent: it.Message, Message: &wire.Message{Body: ""}}); !errors.As(err, &leased) {
		t.Fatal(err)
	}
	if got := unreadOf(t, team, "alice"); len(got) != 0 {
		t.Fatal("told: ", got)
	}
	if _, err := r.Ack(ctx, jobs, &Outgoing{From: team.Box("bob"), Parent: it.Message, Message: &wire.Message{Body: "done"}}); err != nil {
		t.Fatal(err)
	}
	if ack, err := AckOf(team.Box("alice"), id, jobs.Address()); err != nil || ack.Body != "done" || ack.From != team.Box("bob").Address() {
		t.Fatal(ack, err)
	}
	if again, err := r.Ack(ctx, jobs, &Outgoing{From: team.Box("bob"), Parent: it.Message, Message: &wire.Message{Body: "done"}}); err != nil || !again.WasAcked {
		t.Fatal(again, err)
	}
}
