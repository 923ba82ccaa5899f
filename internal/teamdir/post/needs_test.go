package post

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// sendWith has alice send bob a message.
func sendWith(t *testing.T, team *teamdir.Team, m *wire.Message) wire.ID {
	t.Helper()
	_, err := Send(t.Context(), team.Root(), &Outgoing{From: team.Box("alice"), To: []wire.Address{team.Box("bob").Address()}, Message: m})
	teamtest.Must(t, err)
	return m.ID
}

// ackAs has bob ack a message with an outcome.
func ackAs(t *testing.T, team *teamdir.Team, id wire.ID, outcome string) {
	t.Helper()
	m, err := team.Box("bob").Get(id)
	teamtest.Must(t, err)
	ack := &wire.Message{}
	ack.SetOutcome(outcome)
	_, err = Ack(t.Context(), team.Root(), team.Box("bob"), team.Box("bob"), m.Message, ack)
	teamtest.Must(t, err)
}

// unreadBodies are the texts of the unread messages that bob is shown.
func unreadBodies(t *testing.T, team *teamdir.Team) string {
	t.Helper()
	got := teamtest.UnreadOf(t, team, "bob")
	slices.Sort(got)
	return strings.Join(got, " ")
}

// A message is shown once all that it needs is acked as done, and so do chains.
func TestNeeds(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	one, two := teamtest.Post(t, team, "alice", "bob", "one"), teamtest.Post(t, team, "alice", "bob", "two")
	b := &wire.Message{Body: "b", Needs: []wire.ID{one, two}}
	c := &wire.Message{Body: "c", Needs: []wire.ID{sendWith(t, team, b)}}
	sendWith(t, team, c)
	for _, step := range []struct {
		of            wire.ID
		outcome       string
		want, because string // of b
	}{
		{one, "", "two", ""},
		{one, "blocked", "two", one.Short(6) + ", which bob acked as blocked"},
		{two, "done", "", one.Short(6) + ", which bob acked as blocked"},
		{two, "declined", "", one.Short(6) + ", which bob acked as blocked"},
		{one, "done", "", two.Short(6) + ", which bob declined"},
		{two, "done", "b", ""},
		{b.ID, "done", "c", ""},
	} {
		ackAs(t, team, step.of, step.outcome)
		if got := unreadBodies(t, team); got != step.want {
			t.Fatalf("%s %s: bob has %s", step.of.Short(6), step.outcome, got)
		}
		if why := WhyNever(team, b); why != step.because {
			t.Errorf("%s %s: %q", step.of.Short(6), step.outcome, why)
		}
	}
}

// A message that needs what was withdrawn, or whose recipient is retired, is never shown, and says so.
func TestNeedsInVain(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob", "carol")
	gone, kept := teamtest.Post(t, team, "alice", "bob", "gone"), teamtest.Post(t, team, "alice", "carol", "kept")
	b, c := &wire.Message{Body: "b", Needs: []wire.ID{gone}}, &wire.Message{Body: "c", Needs: []wire.ID{kept}}
	sendWith(t, team, b)
	sendWith(t, team, c)
	m, err := team.Box("bob").Get(gone)
	teamtest.Must(t, err)
	_, err = Withdraw(t.Context(), team.Root(), team.Box("alice"), m.Message, team.Box("bob").Address(), nil)
	teamtest.Must(t, err)
	_, err = team.Retire(t.Context(), "carol")
	teamtest.Must(t, err)
	if got := unreadBodies(t, team); got != "" {
		t.Errorf("bob has %s", got)
	}
	if why := WhyNever(team, b); why != gone.Short(6)+", which was withdrawn" {
		t.Error(why)
	}
	if why := WhyNever(team, c); why != kept.Short(6)+", and carol is not there any more" {
		t.Error(why)
	}
	state, err := Withdraw(t.Context(), team.Root(), team.Box("alice"), b, team.Box("bob").Address(), nil)
	if state != wire.Unread || err != nil {
		t.Errorf("%s, %v", state, err)
	}
}

// Two messages that need each other are never shown, and the look ends.
func TestNeedsInARing(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	one, two := wire.NewID(), wire.NewID()
	sendWith(t, team, &wire.Message{ID: one, Body: "one", Needs: []wire.ID{two}})
	sendWith(t, team, &wire.Message{ID: two, Body: "two", Needs: []wire.ID{one}})
	if got := unreadBodies(t, team); got != "" {
		t.Errorf("bob has %s", got)
	}
}

// What waited in .later is delivered once to whom it is for, with what it waits for; what cannot be stays.
func TestMoveLater(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	dir := filepath.Join(team.Dir().Path(), ".later")
	teamtest.Must(t, os.MkdirAll(filepath.Join(dir, "after/01890000-0000-7000-8000-000000000009"), 0o700))
	for name, text := range map[string]string{
		"20260101T000000.000Z.alice.01890000-0000-7000-8000-000000000001.json":       `"id":"01890000-0000-7000-8000-000000000001","body":"due","sent_at":"2026-01-01T00:00:00Z","to":["bob@main"]`,
		"20990101T000000.000Z.alice.01890000-0000-7000-8000-000000000002.json":       `"id":"01890000-0000-7000-8000-000000000002","body":"in 2099","sent_at":"2099-01-01T00:00:00Z","to":["bob@main"]`,
		"20260101T000000.000Z.alice.01890000-0000-7000-8000-000000000003.after.json": `"id":"01890000-0000-7000-8000-000000000003","body":"after","sent_at":"2026-01-01T00:00:00Z","to":["bob@main"],"meta":{"atm":{"after":["01890000-0000-7000-8000-000000000009"]}}`,
		"20260101T000000.000Z.alice.01890000-0000-7000-8000-000000000004.json":       `"id":"01890000-0000-7000-8000-000000000004","body":"to nobody","sent_at":"2026-01-01T00:00:00Z","to":["bob@main","zed@main"]`,
	} {
		teamtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(`{"from":"alice@main",`+text+`}`), 0o600))
	}
	for range 2 {
		if err := teamdir.MoveLater(t.Context(), team); err == nil || !strings.Contains(err.Error(), `no agent "zed"`) {
			t.Error(err)
		}
		left, err := os.ReadDir(dir)
		teamtest.Must(t, err)
		if len(left) != 1 || !strings.Contains(left[0].Name(), "000004") {
			t.Errorf("left: %v", left)
		}
		if got := unreadBodies(t, team); got != "due to nobody" {
			t.Errorf("bob is shown %s", got)
		}
	}
	for id, want := range map[wire.ID]wire.Message{
		"01890000-0000-7000-8000-000000000002": {NotBefore: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)},
		"01890000-0000-7000-8000-000000000003": {NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Needs: []wire.ID{"01890000-0000-7000-8000-000000000009"}},
	} {
		it, err := team.Box("bob").Get(id)
		teamtest.Must(t, err)
		sent, err := team.Box("alice").Sent(id)
		teamtest.Must(t, err)
		if it.State != wire.Later || !it.NotBefore.Equal(want.NotBefore) || !slices.Equal(it.Needs, want.Needs) || sent.SentAt.After(time.Now()) {
			t.Errorf("%s: %s, %+v", id, it.State, it.Message)
		}
	}
}
