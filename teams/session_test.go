package teams_test

import (
	"errors"
	"os"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// The tests stand for programs that people start: what says that an agent did is none of theirs.
func TestMain(m *testing.M) {
	for _, name := range programs.Marks() {
		os.Unsetenv(name)
	}
	os.Exit(m.Run())
}

// A verdict from a program counts where that of a command would, for the list of what waits and for the session alike.
func TestVerdict(t *testing.T) {
	ctx, team := t.Context(), newTeam(t, "alice", "bob", "me")
	s, err := team.Sessions().New(ctx, session.Options{Agent: "bob"})
	must(err)
	box, err := team.Mailbox("bob")
	must(err)
	defer box.Close()
	draft := wire.UUID(wire.NewID())
	events, err := session.Events(s.SessionID, foreign.SessionEvent{Kind: "draft_ready", DraftID: draft, Summary: "two files"})
	must(err)
	must(box.Log().Append(ctx, events...))
	waiting := func() int {
		t.Helper()
		all, err := team.Pending(ctx)
		must(err)
		return len(all)
	}
	if waiting() != 1 {
		t.Fatal("the draft does not wait")
	}
	say := func(from wire.Name, kind string) error {
		return team.Say(ctx, from, s.SessionID, foreign.HumanInput{Kind: kind, DraftID: draft})
	}
	if err := say("bob", "approve"); err == nil || waiting() != 1 {
		t.Error("bob approved his own draft:", err)
	}
	os.Setenv("ATM_RUN", "1")
	err = say("alice", "approve")
	os.Unsetenv("ATM_RUN")
	if err == nil || waiting() != 1 {
		t.Error("an agent's program approved:", err)
	}
	// Dropped into the inbox by a program, it counts for neither.
	m, err := session.Message(s.SessionID, foreign.HumanInput{Kind: "approve", DraftID: draft})
	must(err)
	m.From = wire.Address{Agent: "me", Team: "main"}
	_, err = box.Deliver(ctx, *m)
	must(err)
	alone, err := session.Open(team.Dir(), session.OpenOptions{})
	must(err)
	defer alone.Close()
	got, err := alone.Get(s.SessionID)
	must(err)
	if err := alone.Said(ctx, got); err != nil || len(got.DraftIDs) > 0 || waiting() != 1 {
		t.Errorf("a delivered verdict: %+v, %v", got, err)
	}
	must(say("me", "approve"))
	if err := say("me", "reject"); waiting() != 0 || !errors.Is(err, mailbox.ErrNotFound) && !errors.Is(err, teams.ErrAnswered) {
		t.Errorf("%d wait after an approval, and a rejection is %v", waiting(), err)
	}
	got, err = team.Sessions().Get(s.SessionID)
	must(err)
	if err := team.Sessions().Said(ctx, got); err != nil || len(got.DraftIDs) != 1 || len(got.Messages) == 0 {
		t.Errorf("the session has %+v, %v", got, err)
	}
	must(team.Say(ctx, "me", s.SessionID, foreign.HumanInput{Kind: "message", Text: "thank you"}))
	if _, err := team.State("bob"); err != nil {
		t.Error(err)
	}
}
