package doctor

import (
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/rootdir"
)

// A member that is retired after the members were listed is no problem.
func TestRetiredMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".atm")
	if _, err := rootdir.Make(path); err != nil {
		t.Fatal(err)
	}
	root, err := teams.Open(rootdir.Found{Path: path, Source: rootdir.FromFlag}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	team, err := root.CreateTeam("main")
	if err != nil {
		t.Fatal(err)
	}
	d := &doctor{ctx: t.Context(), root: root}
	d.checkMailbox(team.Box("bob"))
	if len(d.checks) > 0 {
		t.Error(d.checks)
	}
}
