package teamdir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// Whoever has last run in a directory, or would by team.toml, works there; not the agent itself, nor one with a worktree.
func TestSharesDir(t *testing.T) {
	t.Parallel()
	team, repo := teamtest.RepositoryTeam(t, nil)
	sub := filepath.Join(repo, "sub")
	check := func(about string, name wire.Name, dir, want string) {
		t.Helper()
		if got, err := team.SharesDir(name, dir); err != nil || got != want {
			t.Errorf("%s: %s in %s shares it with %q (%v), want %q", about, name, dir, got, err, want)
		}
	}
	write := func(text string) {
		t.Helper()
		teamtest.Must(t, os.WriteFile(team.Dir().Join(config.File), []byte(text), 0o600))
	}
	check("no team.toml", "bob", sub, "")
	write("[members.carol]\ncommand = [\"x\"]\ncwd = \"sub\"\n")
	check("planned", "bob", sub, "carol@main")
	check("herself", "carol", sub, "")
	check("elsewhere", "bob", repo, "")
	write("[members.carol]\ncommand = [\"x\"]\ncwd = \"sub\"\nworktree = true\n")
	check("a worktree", "bob", sub, "")
	teamtest.Must(t, team.Dir().Mkdir("bob/run"))
	run, err := team.Dir().Sub("bob/run")
	teamtest.Must(t, err)
	defer run.Close()
	teamtest.Must(t, runinfo.Info{Cwd: sub}.Write(run))
	teamtest.Must(t, os.Symlink(sub, filepath.Join(repo, "link")))
	check("it has run there", "carol", filepath.Join(repo, "link"), "bob@main")
	check("itself", "bob", sub, "")
	write("[members.carol")
	if other, err := team.SharesDir("bob", repo); err == nil {
		t.Errorf("team.toml cannot be read: %q", other)
	}
}
