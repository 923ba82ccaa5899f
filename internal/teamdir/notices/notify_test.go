package notices

import (
	"os"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// A question that is told again is one message, also where its program has ended meanwhile, so that it reads differently.
func TestQuestionIsToldOnce(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "bob", "lead")
	teamtest.Must(t, os.WriteFile(team.Dir().Join("team.toml"), []byte("lead = \"lead\"\n"), 0o600))
	q, id := ask.Question{Agent: "bob", Prompt: "Remove build?"}, wire.NewID()
	for _, q.Running = range []bool{true, false} {
		teamtest.Must(t, NotifyRequest(t.Context(), team, team.Box("bob"), q, id, nil))
	}
	if ids, err := team.Box("lead").UnreadIDs(); len(ids) != 1 || ids[0] != id || err != nil {
		t.Errorf("the lead has %v, %v", ids, err)
	}
}

// A question that was answered is not in the answerer's mail, read or not.
func TestAnsweredQuestionLeavesTheMail(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "bob", "lead")
	teamtest.Must(t, os.WriteFile(team.Dir().Join("team.toml"), []byte("lead = \"lead\"\n"), 0o600))
	for _, isRead := range []bool{false, true} {
		id, lead := wire.NewID(), team.Box("lead")
		teamtest.Must(t, NotifyRequest(t.Context(), team, team.Box("bob"), ask.Question{Agent: "bob", Prompt: "Remove build?"}, id, nil))
		if isRead {
			teamtest.Must(t, lead.MarkRead(t.Context(), id))
		}
		teamtest.Must(t, WithdrawRequest(t.Context(), team, team.Box("bob"), id))
		if d, ok, err := lead.Locate(id); d.State != wire.Withdrawn || !ok || err != nil {
			t.Errorf("read %v: it is %s, %v", isRead, d.State, err)
		}
	}
}
