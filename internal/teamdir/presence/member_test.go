package presence

import (
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// The evidence that a program has ended is as old as its end.
func TestSourceOfAnEnd(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	for _, kind := range []string{wire.Spawned, wire.TurnIdle, wire.Exited} {
		teamtest.Must(t, team.Box("bob").Log().Append(t.Context(), wire.Event{Source: wire.SourcePTY, Kind: kind}))
	}
	m, err := Status(t.Context(), team, "bob")
	teamtest.Must(t, err)
	if m.Source != "runner" || !m.HeardAt.Equal(*m.Since) {
		t.Errorf("%s at %v, not since %v", m.Source, m.HeardAt, m.Since)
	}
}

// A message asks a person if it has choices, wants an ack, and has not expired.
func TestMailQuestions(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob", "me")
	teamtest.Must(t, team.Dir().Replace("team.toml", []byte("[members.me]\nperson = true\n"), false))
	asks := func(m *wire.Message) { m.Choices, m.RequiresAck = []string{"yes", "no"}, true }
	id := teamtest.Post(t, team, "bob", "me", "asks", asks)
	teamtest.Post(t, team, "bob", "me", "wants no ack", asks, func(m *wire.Message) { m.RequiresAck = false })
	teamtest.Post(t, team, "bob", "me", "has no choices", asks, func(m *wire.Message) { m.Choices = nil })
	teamtest.Post(t, team, "bob", "me", "has expired", asks, func(m *wire.Message) { m.ExpiresAt = time.Now().Add(-time.Hour) })
	all, err := MailQuestions(team)
	teamtest.Must(t, err)
	if len(all) != 1 || all[0].ID != string(id) {
		t.Errorf("%+v", all)
	}
}

// Of what another host says that its member asks, one sees what can be answered from here.
func TestQuestionsOfAnotherHost(t *testing.T) {
	t.Parallel()
	row := Row{Member: Member{Name: "bob"}}
	for _, kind := range []string{reducer.Permission, ask.KindMail, reducer.Question, ask.KindDraft, reducer.ClientTool, "new"} {
		row.Questions = append(row.Questions, ask.Question{Kind: kind, Agent: "alice"})
	}
	r := Rows{Host: "there", At: time.Now(), ReceivedAt: time.Now()}
	got := ""
	for _, q := range r.localize(row).Questions {
		got += string(q.Agent) + " " + q.Kind + "\n"
	}
	if want := "bob@there permission\nbob@there prompt\nbob@there tool\n"; got != want {
		t.Error(got)
	}
}
