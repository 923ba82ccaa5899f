package post

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// sendAfter has alice write a message to bob that waits for others.
func sendAfter(t *testing.T, team *teamdir.Team, body string, after ...wire.ID) (wire.ID, error) {
	t.Helper()
	o := &Outgoing{From: team.Box("alice"), To: []wire.Address{team.Box("bob").Address()}, Message: &wire.Message{Body: body}, Once: body}
	SetAfter(o.Message, after)
	_, err := SendLater(t.Context(), team.Root(), o, time.Now())
	return o.Message.ID, err
}

// ackAs has bob ack a message with an outcome.
func ackAs(t *testing.T, team *teamdir.Team, id wire.ID, outcome string) error {
	t.Helper()
	m, err := team.Box("bob").Get(id)
	if err != nil {
		return err
	}
	ack := &wire.Message{}
	ack.SetOutcome(outcome)
	_, err = Ack(t.Context(), team.Root(), team.Box("bob"), team.Box("bob"), m.Message, ack)
	return err
}

// A message waits until all that it names is acked as done, and so do chains. Its sender is told once of what is blocked.
func TestAfter(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	one, two := teamtest.Post(t, team, "alice", "bob", "one"), teamtest.Post(t, team, "alice", "bob", "two")
	b, err := sendAfter(t, team, "b", one, two)
	teamtest.Must(t, err)
	_, err = sendAfter(t, team, "c", b)
	teamtest.Must(t, err)
	for _, step := range []struct {
		of      wire.ID
		outcome string
		want    string
		told    int
	}{
		{one, "", "one two", 0},
		{one, "blocked", "one two", 1},
		{one, "blocked", "one two", 1},
		{two, "done", "one two", 1},
		{two, "declined", "one two", 2},
		{one, "done", "one two", 2},
		{two, "done", "b one two", 2},
		{b, "done", "b c one two", 2},
	} {
		teamtest.Must(t, ackAs(t, team, step.of, step.outcome))
		for range 2 {
			if got := strings.Join(bodiesOf(t, team, "bob"), " "); got != step.want {
				t.Fatalf("%s %s: bob has %s", step.of.Short(6), step.outcome, got)
			}
			told := slices.DeleteFunc(bodiesOf(t, team, "alice"), func(body string) bool { return !strings.HasPrefix(body, "Your message") })
			if len(told) != step.told {
				t.Fatalf("%s %s: alice was told %q", step.of.Short(6), step.outcome, told)
			}
			_, err := DeliverLater(t.Context(), team)
			teamtest.Must(t, err)
		}
	}
	if names, _ := team.Dir().Names(afterDir); len(names) != 0 || in(t, team, ToBeSent) != 0 {
		t.Errorf("left: %q", names)
	}
}

func TestAfterRefused(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	one := teamtest.Post(t, team, "alice", "bob", "one")
	b, err := sendAfter(t, team, "b", one)
	teamtest.Must(t, err)
	c, err := sendAfter(t, team, "c", b)
	teamtest.Must(t, err)
	o := &Outgoing{From: team.Box("alice"), To: []wire.Address{team.Box("bob").Address()}, Message: &wire.Message{ID: b, Body: "b"}}
	SetAfter(o.Message, []wire.ID{c})
	if _, err := SendLater(t.Context(), team.Root(), o, time.Now()); !errors.Is(err, ErrWaitsForItself) {
		t.Error(err)
	}
	if _, err := sendAfter(t, team, "unknown", wire.NewID()); !errors.Is(err, maildir.ErrNotFound) {
		t.Error(err)
	}
}

// Withdrawing what is waited for is told, and withdrawing what waits leaves nothing.
func TestAfterWithdrawn(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	alice, one := team.Box("alice"), teamtest.Post(t, team, "alice", "bob", "one")
	b, err := sendAfter(t, team, "b", one)
	teamtest.Must(t, err)
	m, err := team.Box("bob").Get(one)
	teamtest.Must(t, err)
	_, err = Withdraw(t.Context(), team.Root(), alice, m.Message, team.Box("bob").Address(), nil)
	teamtest.Must(t, err)
	teamtest.Must(t, LookAgain(t.Context(), team, one))
	if got := bodiesOf(t, team, "alice"); len(got) != 1 || !strings.Contains(got[0], "which was withdrawn: atm trace") {
		t.Errorf("alice was told %q", got)
	}
	_, err = WithdrawLater(t.Context(), team.Root(), alice.Address(), b)
	teamtest.Must(t, err)
	if names, _ := team.Dir().Names(afterDir); len(names) != 0 || in(t, team, ToBeSent) != 0 || in(t, team, maildir.Withdrawn) != 1 {
		t.Errorf("left: %q", names)
	}
}

// Without a message that waits for it, an ack costs one look more, whatever else is to be sent later, and a look at what is
// due costs a listing.
func TestAfterCost(t *testing.T) {
	var mu sync.Mutex
	var ops []string
	r := teamtest.NewFaultyRoot(t, nil, func(op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		ops = append(ops, op+" "+name)
		return nil
	})
	team := teamtest.NewTeam(t, r, "alice", "bob")
	var ids []wire.ID
	for range 4 {
		ids = append(ids, teamtest.Post(t, team, "alice", "bob", "needed"))
	}
	cost := func(id wire.ID) int {
		ops = nil
		teamtest.Must(t, ackAs(t, team, id, "done"))
		return len(ops)
	}
	cost(ids[0]) // makes the directories
	before := cost(ids[1])
	for range 20 {
		_, err := sendAfter(t, team, string(wire.NewID()), ids[3])
		teamtest.Must(t, err)
	}
	if after := cost(ids[2]); after != before {
		t.Errorf("%d operations, %d before", after, before)
	}
	ops = nil
	_, err := DeliverLater(t.Context(), team)
	teamtest.Must(t, err)
	if len(ops) != 1 {
		t.Errorf("%q", ops)
	}
}

// A process that is killed at any operation, while it sends what waits or acks what is waited for, loses nothing and doubles
// nothing: whoever looks next goes on.
func TestAfterKilled(t *testing.T) {
	killed := errors.New("killed")
	for _, name := range []string{"send", "ack", "ack blocked", "withdraw"} {
		points := 0
		for isOver := false; !isOver; points += 3 {
			r := teamtest.NewRoot(t, nil)
			team := teamtest.NewTeam(t, r, "alice", "bob")
			one := teamtest.Post(t, team, "alice", "bob", "one")
			do := func(team *teamdir.Team) (err error) {
				switch name {
				case "send":
					_, err = sendAfter(t, team, "b", one)
				case "ack":
					err = ackAs(t, team, one, "done")
				case "ack blocked":
					err = ackAs(t, team, one, "blocked")
				case "withdraw":
					waiting, bad := ListLater(team, ToBeSent)
					for _, l := range waiting {
						_, bad = WithdrawLater(t.Context(), team.Root(), team.Box("alice").Address(), l.ID)
					}
					err = bad
				}
				return err
			}
			if name != "send" {
				_, err := sendAfter(t, team, "b", one)
				teamtest.Must(t, err)
			}
			left := points
			var mu sync.Mutex
			durable.FailNext(r.Path, func(op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if left--; left < 0 {
					return killed
				}
				return nil
			})
			dying, err := teamdir.OpenFound(rootdir.Found{Path: r.Path, Source: rootdir.FromFlag}, nil)
			teamtest.Must(t, err)
			if dead, err := dying.Team("main"); err == nil {
				do(dead)
			}
			isOver = left >= 0
			dying.Close()

			look := func() {
				_, err := DeliverLater(t.Context(), team)
				teamtest.Must(t, err)
			}
			look()
			isDone := NeedFor(team, mustMessage(t, team, one)).Outcome == "done"
			if got := slices.Contains(bodiesOf(t, team, "bob"), "b"); name == "ack" && got != isDone {
				t.Fatalf("%s, killed at %d: done %v, but b is there %v", name, points, isDone, got)
			}
			isWithdrawn := in(t, team, maildir.Withdrawn) > 0
			if name == "send" {
				_, err := sendAfter(t, team, "b", one)
				teamtest.Must(t, err)
			}
			look()
			if got := bodiesOf(t, team, "bob"); !isDone && slices.Contains(got, "b") {
				t.Fatalf("%s, killed at %d: it did not wait", name, points)
			}
			teamtest.Must(t, ackAs(t, team, one, "done"))
			look()
			want := []string{"b", "one"}
			if isWithdrawn {
				want = want[1:]
			}
			if got := bodiesOf(t, team, "bob"); !slices.Equal(got, want) || in(t, team, ToBeSent)+in(t, team, Undelivered) != 0 {
				t.Fatalf("%s, killed at %d: bob has %q, %d wait", name, points, got, in(t, team, ToBeSent))
			}
		}
		t.Logf("%s: killed at %d operations", name, points)
	}
}

func mustMessage(t *testing.T, team *teamdir.Team, id wire.ID) *wire.Message {
	t.Helper()
	it, _, err := Find(team, nil, string(id))
	teamtest.Must(t, err)
	return it.Message
}

// Several acks and senders at once: each message that waited is delivered once.
func TestAfterAtOnce(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob")
	var needed []wire.ID
	for range 6 {
		needed = append(needed, teamtest.Post(t, team, "alice", "bob", "needed"))
	}
	var wg sync.WaitGroup
	for i, id := range needed {
		other, err := teamdir.Open(r.Path, nil)
		teamtest.Must(t, err)
		t.Cleanup(func() { other.Close() })
		again, err := other.Team("main")
		teamtest.Must(t, err)
		wg.Go(func() {
			if _, err := sendAfter(t, again, string(rune('a'+i)), needed...); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			for range 3 {
				if err := ackAs(t, again, id, "done"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	_, err := DeliverLater(t.Context(), team)
	teamtest.Must(t, err)
	got := slices.DeleteFunc(bodiesOf(t, team, "bob"), func(body string) bool { return body == "needed" })
	if want := strings.Split("a b c d e f", " "); !slices.Equal(got, want) || in(t, team, ToBeSent) != 0 {
		t.Errorf("bob has %q, %d wait", got, in(t, team, ToBeSent))
	}
}
