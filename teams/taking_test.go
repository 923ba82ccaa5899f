package teams

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// taken has bob take from jobs; "" where there is nothing.
func taken(t *testing.T, team *Team) wire.ID {
	t.Helper()
	h, err := team.Box("jobs").Hold(context.Background(), mailbox.HoldOptions{By: team.Box("bob").Address(), For: time.Minute}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h == nil {
		return ""
	}
	return h.ID
}

// unreadOf are the bodies of a member's unread messages.
func unreadOf(t *testing.T, team *Team, name wire.Name) (out []string) {
	t.Helper()
	if _, _, err := team.Box(name).Walk(context.Background(), mailbox.Range{Unread: true}, func(it *mailbox.Item) bool {
		out = append(out, it.Body)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// spend has bob take and give back until nobody is given the message any more.
func spend(t *testing.T, team *Team, id wire.ID) {
	t.Helper()
	for range mailbox.MaxTries {
		if got := taken(t, team); got != id {
			t.Fatalf("took %q, want %s", got, id)
		}
		if err := team.Box("jobs").GiveBack(context.Background(), id, team.Box("bob").Address(), "", "exit status 1"); err != nil {
			t.Fatal(err)
		}
	}
}

// The sender of a message that was set aside is told once, also when who told
// was killed before it was noted, and once more when it was set aside again.
func TestSenderIsToldOnce(t *testing.T) {
	ctx := context.Background()
	r := newRoot(t)
	team := newTeam(t, r, "alice", "bob", "jobs")
	jobs := team.Box("jobs")
	id := post(t, team, "alice", "jobs", "impossible")
	spend(t, team, id)
	untold, err := jobs.Tidy(ctx)
	if err != nil || len(untold) != 1 {
		t.Fatal(untold, err)
	}
	if err := r.tellAside(ctx, jobs, untold[0], nil); err != nil { // and then killed
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Tidy(ctx, jobs, nil); err != nil {
			t.Fatal(err)
		}
	}
	got := unreadOf(t, team, "alice")
	if len(got) != 1 || strings.Count(got[0], "bob@main: exit status 1") != mailbox.MaxTries {
		t.Fatal(got)
	}
	if _, err := jobs.Unread(ctx, id); err != nil {
		t.Fatal(err)
	}
	spend(t, team, id)
	if _, err := team.Row(ctx, "jobs"); err != nil { // whoever looks
		t.Fatal(err)
	}
	if got := unreadOf(t, team, "alice"); len(got) != 2 {
		t.Fatal(got)
	}
}

// What nobody can be told about is set aside all the same.
func TestNobodyToTell(t *testing.T) {
	ctx := context.Background()
	r := newRoot(t)
	team := newTeam(t, r, "bob", "jobs")
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "gone", Team: "elsewhere"}, Body: "x"}
	p := &mailbox.Post{Message: m, To: []*mailbox.Box{team.Box("jobs")}}
	if mailbox.Deliver(ctx, p); p.Outcomes[0].Err != nil {
		t.Fatal(p.Outcomes[0].Err)
	}
	spend(t, team, m.ID)
	if err := r.Tidy(ctx, team.Box("jobs"), nil); err != nil {
		t.Fatal(err)
	}
	if untold, err := team.Box("jobs").Tidy(ctx); err != nil || len(untold) != 0 {
		t.Fatal(untold, err)
	}
}

// An ack reaches the sender only from who holds the message.
func TestAckTaken(t *testing.T) {
	ctx := context.Background()
	r := newRoot(t)
	team := newTeam(t, r, "alice", "bob", "carol", "jobs")
	jobs := team.Box("jobs")
	id := post(t, team, "alice", "jobs", "work")
	taken(t, team)
	it, err := jobs.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	var leased *mailbox.LeasedError
	if _, err := r.AckTaken(ctx, jobs, team.Box("carol").Address(), "", it.Message, "", nil); !errors.As(err, &leased) {
		t.Fatal(err)
	}
	if _, err := r.Ack(ctx, jobs, it.Message, "", nil); !errors.As(err, &leased) {
		t.Fatal(err)
	}
	if got := unreadOf(t, team, "alice"); len(got) != 0 {
		t.Fatal("told: ", got)
	}
	if _, err := r.AckTaken(ctx, jobs, team.Box("bob").Address(), "", it.Message, "done", nil); err != nil {
		t.Fatal(err)
	}
	if ack, all := r.AckedBy(ctx, &wire.Message{ID: id, To: []wire.Address{jobs.Address()}}, team.Box("alice")); !all || ack.Body != "done" || ack.From != team.Box("bob").Address() {
		t.Fatal(ack, all)
	}
	if _, err := r.AckTaken(ctx, jobs, team.Box("bob").Address(), "", it.Message, "done", nil); !errors.Is(err, mailbox.ErrNotHeld) {
		t.Fatal(err)
	}
}

func TestMayTake(t *testing.T) {
	ctx := context.Background()
	r := newRoot(t)
	team := newTeam(t, r, "bob", "jobs")
	jobs, bob := team.Box("jobs"), team.Box("bob").Address()
	if err := MayTake(jobs, jobs.Address()); err != nil {
		t.Fatal(err)
	}
	for _, yes := range []bool{false, true, true, false} {
		if err := jobs.Share(ctx, yes); err != nil {
			t.Fatal(err)
		}
		if err := MayTake(jobs, bob); errors.Is(err, ErrNotShared) == yes {
			t.Fatal(yes, err)
		}
		if err := MayTake(jobs, wire.Address{Agent: "bob", Team: "other"}); !errors.Is(err, ErrNotShared) {
			t.Fatal("of another team: ", err)
		}
	}
}

// A backup has what is set aside, and what is taken, with who took it.
func TestBackupOfTaken(t *testing.T) {
	ctx := context.Background()
	r := newRoot(t)
	team := newTeam(t, r, "alice", "bob", "jobs")
	bad := post(t, team, "alice", "jobs", "bad")
	spend(t, team, bad)
	held := post(t, team, "alice", "jobs", "held")
	taken(t, team)
	var b bytes.Buffer
	if _, err := r.Backup(ctx, &b, nil); err != nil {
		t.Fatal(err)
	}
	other := newRoot(t)
	for range 2 {
		if _, err := other.Restore(ctx, bytes.NewReader(b.Bytes()), nil); err != nil {
			t.Fatal(err)
		}
		again, err := other.Team("main")
		if err != nil {
			t.Fatal(err)
		}
		if it, err := again.Box("jobs").Get(bad); err != nil || it.State != mailbox.Aside || it.Takings.Tries() != mailbox.MaxTries {
			t.Fatal(it, err)
		}
		if it, err := again.Box("jobs").Get(held); err != nil || it.State != mailbox.Unread || it.Takings.Holder(time.Now()) == nil {
			t.Fatal(it, err)
		}
	}
}
