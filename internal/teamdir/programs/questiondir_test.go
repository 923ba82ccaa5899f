package programs

import (
	"os"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir/teamtest"
)

// The next question removes the directories that killed processes have left, but no young one, and none of a process that
// listens.
func TestLeftQuestionDirs(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	begin := func(id string) {
		t.Helper()
		server, err := ListenToQuestion(t.Context(), team, "bob", id)
		teamtest.Must(t, err)
		t.Cleanup(func() { server.Close() })
	}
	age := func(id string) {
		t.Helper()
		before := time.Now().Add(-2 * leftAfter)
		teamtest.Must(t, os.Chtimes(team.Dir().Join(questionDir("bob", id)), before, before))
	}
	begin("listens")
	teamtest.Must(t, team.Dir().Mkdir(questionDir("bob", "left")))
	teamtest.Must(t, team.Dir().Mkdir(questionDir("bob", "young")))
	age("listens")
	age("left")
	begin("next")
	for id, want := range map[string]bool{"listens": true, "left": false, "young": true, "next": true} {
		if is, _ := team.Dir().Exists(questionDir("bob", id)); is != want {
			t.Errorf("%s: %v", id, is)
		}
	}
}
