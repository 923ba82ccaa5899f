package teamdir_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
)

func TestTurnsLimit(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	for i := range 60 {
		teamtest.Happen(t, team, "bob", fmt.Sprintf("turn_started turn=t%d prompt=%s", i, strings.Repeat("x", 500)))
		teamtest.Happen(t, team, "bob", fmt.Sprintf("turn_completed turn=t%d status=completed", i))
	}
	turns, err := team.Turns("bob", 5)
	if err != nil || len(turns) != 5 || turns[0].ID != "t55" || turns[4].ID != "t59" || turns[0].Prompt == "" {
		t.Error(turns, err)
	}
}

// Of several members whose events cannot be read, each is named.
func TestUnreadableQuestions(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob", "carol")
	teamtest.Happen(t, team, "alice", "waiting_for_input prompt=Which?")
	for _, name := range []string{"bob", "carol"} {
		teamtest.Must(t, team.Dir().MkdirAll(name+"/events/00000000000000000001.ndjson"))
	}
	list, err := presence.PendingQuestions(t.Context(), team)
	unreadable, ok := errors.AsType[*teamdir.UnreadableError](err)
	if len(list) != 1 || !ok || !strings.Contains(unreadable.Error(), "of bob") || !strings.Contains(unreadable.Error(), "of carol") {
		t.Error(list, err)
	}
}
