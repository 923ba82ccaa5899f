package input_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/input"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// People and an agent in a session: a draft is answered once, the session is aborted, and the agent gets both as human
// input.
func ExampleSendInput() {
	ctx := context.Background()
	team, done := aTeam("bob", "me")
	defer done()
	s, err := team.Sessions().New(ctx, session.Options{Agent: "bob"})
	if err != nil {
		fmt.Println(err)
		return
	}
	emit(team, foreign.SessionEvent{Kind: "draft_ready", DraftID: "6f1c2a34-0b7e-4c1d-9a55-0123456789ab", Summary: "Auth", ArtifactCount: 2})
	waiting, err := presence.PendingQuestions(ctx, team)
	fmt.Println(waiting[0].Kind, waiting[0].Prompt, err)

	me := team.Box("me")
	no := input.SessionInput{From: me, Input: foreign.HumanInput{Kind: "reject", Reason: "No tests."}}
	_, err = input.AnswerDraft(ctx, team, waiting[0], no)
	fmt.Println(err)
	_, err = input.AnswerDraft(ctx, team, waiting[0], no)
	fmt.Println(err)
	out, err := input.SendInput(ctx, team, s.SessionID, input.SessionInput{From: me, Input: foreign.HumanInput{Kind: "abort"}})
	fmt.Println(out.Session.State, err)
	inbox.Walk(ctx, team.Box("bob"), maildir.Range{Unread: true}, func(it *wire.Item) bool {
		in, _ := session.InputOf(it.Message)
		fmt.Println(in)
		return true
	})
	// Output:
	// draft Auth (2 artifacts) <nil>
	// <nil>
	// draft 6f1c2a34-0b7e-4c1d-9a55-0123456789ab was already answered: rejected by me
	// aborted <nil>
	// Reject draft 6f1c2a34-0b7e-4c1d-9a55-0123456789ab: No tests.
	// Abort session
}

// Every command applies [session] of team.toml: here it forbids human input, and a completed goal ends the session.
func Example_refreshSession() {
	ctx := context.Background()
	team, done := aTeam("bob", "me")
	defer done()
	os.WriteFile(filepath.Join(team.Dir().Path(), "team.toml"), []byte(`
[session]
allow_human_input = false
auto_exit_on = "goal_complete"
`), 0o600)
	s, err := team.Sessions().New(ctx, session.Options{Agent: "bob"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = input.SendInput(ctx, team, s.SessionID, input.SessionInput{From: team.Box("me"), Input: foreign.HumanInput{Kind: "message", Text: "hello"}})
	fmt.Println(err)
	emit(team, foreign.SessionEvent{Kind: "goal_complete", GoalID: "11111111-2222-4333-8444-555555555555"})
	s, err = presence.RefreshSession(ctx, team, s)
	fmt.Println(s.State, s.EndedByRule(), err)
	// Output:
	// bob accepts no input in sessions: team.toml says allow_human_input = false
	// completed goal_complete <nil>
}

// emit is what bob's program does.
func emit(team *teamdir.Team, e foreign.SessionEvent) {
	events, err := session.Events("", e)
	must(err)
	must(team.Box("bob").Log().Append(context.Background(), events...))
}

// aTeam makes a team with these members.
func aTeam(members ...wire.Name) (*teamdir.Team, func()) {
	path, err := os.MkdirTemp("", "root")
	must(err)
	_, err = rootdir.Make(path)
	must(err)
	root, err := teamdir.Open(path, nil)
	must(err)
	team, err := root.CreateTeam("main")
	must(err)
	for _, m := range members {
		must(team.Store.Create(context.Background(), m))
	}
	return team, func() { root.Close(); os.RemoveAll(path) }
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
