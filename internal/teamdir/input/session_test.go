package input

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Of many concurrent answers to one draft the first counts, the others fail with ErrAnswered, and the agent gets one
// message.
func TestOneAnswerToADraft(t *testing.T) {
	ctx := context.Background()
	for _, in := range []string{"a session", "no session"} {
		t.Run(in, func(t *testing.T) {
			team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob", "alice", "me")
			if in == "a session" {
				if _, err := team.Sessions().New(ctx, session.Options{Agent: "bob"}); err != nil {
					t.Fatal(err)
				}
			}
			const id = "6f1c2a34-0b7e-4c1d-9a55-0123456789ab"
			teamtest.Happen(t, team, "bob", "draft_ready draft_id="+id+" summary=Auth", "draft_ready draft_id="+id+" summary=Auth")
			raw, err := wire.Marshal(foreign.SessionEvent{Kind: "draft_ready", DraftID: id, Summary: "Auth", ArtifactCount: 1})
			teamtest.Must(t, err)
			teamtest.Must(t, team.Box("bob").Log().Append(ctx, wire.Event{Kind: "draft_ready", Source: "cli", Wire: raw}))
			list, err := presence.PendingQuestions(ctx, team)
			if err != nil || len(list) != 1 || list[0].ID != id || (list[0].Session != "") != (in == "a session") {
				t.Fatalf("%+v, %v", list, err)
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			first, late := 0, 0
			for i := range 8 {
				wg.Go(func() {
					input := foreign.HumanInput{Kind: "approve"}
					if i%2 == 0 {
						input = foreign.HumanInput{Kind: "reject", Reason: "no"}
					}
					_, err := AnswerDraft(ctx, team, list[0], SessionInput{From: team.Box("me"), Input: input})
					answered := ErrAnswered
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						first++
					case errors.Is(err, answered):
						late++
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if ids, err := team.Box("bob").UnreadIDs(); first != 1 || late != 7 || len(ids) != 1 || err != nil {
				t.Errorf("%d answered, %d were late, %d messages, %v", first, late, len(ids), err)
			}
			if list, err := presence.PendingQuestions(ctx, team); err != nil || len(list) != 0 {
				t.Errorf("%v waits, %v", list, err)
			}
		})
	}
}

// Whoever writes into a session learns what became of the message.
func TestSendInput(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob", "me")
	s, err := team.Sessions().New(t.Context(), session.Options{Agent: "bob"})
	teamtest.Must(t, err)
	in := SessionInput{From: team.Box("me"), Input: foreign.HumanInput{Kind: "message", Text: "hello"}}
	out, err := SendInput(t.Context(), team, s.SessionID, in)
	teamtest.Must(t, err)
	if !out.To.IsStored || out.To.Address.Agent != "bob" {
		t.Errorf("%+v", out.To)
	}
}

// Of two concurrent aborts one ends the session, and the agent gets one message.
func TestOneAbort(t *testing.T) {
	ctx := context.Background()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob", "me")
	s, err := team.Sessions().New(ctx, session.Options{Agent: "bob"})
	teamtest.Must(t, err)
	say := SessionInput{From: team.Box("me"), Input: foreign.HumanInput{Kind: "abort"}}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = SendInput(ctx, team, s.SessionID, say) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("%v", errs)
	}
	if ids, _ := team.Box("bob").UnreadIDs(); len(ids) != 1 {
		t.Errorf("%d messages", len(ids))
	}
	// The session of a retired agent can still be aborted.
	s, err = team.Sessions().New(ctx, session.Options{Agent: "bob"})
	teamtest.Must(t, err)
	if _, err := team.Retire(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	out, err := SendInput(ctx, team, s.SessionID, say)
	if err != nil || out.Message != nil || out.Session.State != session.Aborted {
		t.Errorf("%+v, %v", out, err)
	}
}

// Forbidden human input is withheld: by the policy that the agent's runner was started with, whatever team.toml says
// now; without a runner also if team.toml has mistakes.
func TestHumanInputWithheld(t *testing.T) {
	const mute, loud = "[session]\nallow_human_input = false\n", "[session]\nallow_human_input = true\n"
	const torn = loud + "[members.bob]\nno_such_key = 1\n"
	for _, c := range []struct {
		started, now string // "": it has no runner
		says         string // "": the message is handed over
	}{
		{"", loud, ""}, {"", mute, "allow_human_input = false"}, {"", torn, "no_such_key"},
		{mute, mute, "allow_human_input = false"}, {mute, torn, "allow_human_input = false"}, {mute, loud, "allow_human_input = false"},
		{loud, loud, ""}, {loud, torn, ""},
	} {
		team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
		says := func(toml string) {
			t.Helper()
			teamtest.Must(t, os.WriteFile(filepath.Join(team.Dir().Path(), "team.toml"), []byte(toml), 0o600))
		}
		if c.started != "" {
			says(c.started)
			plan, err := team.Config()
			teamtest.Must(t, err)
			teamtest.Must(t, team.SavePolicy("bob", plan.Policy("bob")))
			hold, err := claim.HoldRunner(t.Context(), team.Store, "bob")
			teamtest.Must(t, err)
			defer hold.Release()
		}
		says(c.now)
		m, err := session.Message("", foreign.HumanInput{Kind: "message", Text: "hello"})
		teamtest.Must(t, err)
		if got := team.HoldReason(m, "bob"); (got == teamdir.Hold{}) != (c.says == "") || !strings.Contains(got.Because, c.says) {
			t.Errorf("started with %q, now %q: %+v", c.started, c.now, got)
		}
	}
}

// RefreshSession ends no idle session of an agent with a runner, since only the runner knows whether somebody types.
func TestRefreshLeavesIdleSessionToRunner(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	_, _, err := team.WriteConfig("[session]\nauto_exit_on = \"idle_timeout: 1ns\"\n")
	teamtest.Must(t, err)
	s, err := team.Sessions().New(t.Context(), session.Options{Agent: "bob"})
	teamtest.Must(t, err)
	hold, err := claim.HoldRunner(t.Context(), team.Store, "bob")
	teamtest.Must(t, err)
	for _, want := range []session.State{session.Active, session.Completed} {
		got, err := presence.RefreshSession(t.Context(), team, s)
		teamtest.Must(t, err)
		if got.State != want {
			t.Errorf("it is %s, not %s", got.State, want)
		}
		teamtest.Must(t, hold.Release())
	}
}
