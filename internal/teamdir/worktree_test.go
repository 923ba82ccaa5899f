package teamdir_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// Concurrent starts make a member's worktree once, and later starts leave it alone, whatever is in it.
func TestWorktree(t *testing.T) {
	t.Parallel()
	team, repo := teamtest.RepositoryTeam(t, nil)
	if _, _, err := team.Worktree(t.Context(), teamtest.GitEnviron(t), "bob", config.Member{Cwd: "."}, io.Discard); err == nil {
		t.Errorf("there is no commit yet: %v", err)
	}
	teamtest.GitIn(t, repo, "add", ".")
	teamtest.GitIn(t, repo, "commit", "-q", "-m", "first")
	environ := append(teamtest.GitEnviron(t), "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere") // as in a git hook
	made := make([]string, 4)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			dir, done, err := team.Worktree(t.Context(), environ, "bob", config.Member{Cwd: "sub"}, io.Discard)
			if err != nil || dir != filepath.Join(repo, ".atm", "main", ".worktrees", "bob", "sub") {
				t.Errorf("%s, %v", dir, err)
			}
			made[i] = done
		})
	}
	wg.Wait()
	if all := strings.Join(made, ""); strings.Count(all, "made its worktree") != 1 || !strings.Contains(all, "on branch atm/bob") {
		t.Errorf("%q", made)
	}
	top := filepath.Join(repo, ".atm", "main", ".worktrees", "bob")
	if got := teamtest.GitIn(t, top, "status", "--porcelain", "--branch"); got != "## atm/bob" {
		t.Error(got)
	}
	if got := teamtest.GitIn(t, repo, "status", "--porcelain"); got != "" {
		t.Errorf("the repository sees %q", got)
	}
	// Processes in it find the same root without ATM_ROOT.
	found, skipped, err := rootdir.Find(rootdir.Place{Dir: filepath.Join(top, "sub"), UID: os.Getuid()})
	if err != nil || found.Path != filepath.Join(repo, ".atm") || len(skipped) > 0 {
		t.Error(found, skipped, err)
	}
	teamtest.Must(t, os.WriteFile(filepath.Join(top, "sub", "b.txt"), []byte("mine"), 0o600))
	teamtest.GitIn(t, top, "switch", "-q", "-c", "elsewhere")
	_, done, err := team.Worktree(t.Context(), nil, "bob", config.Member{}, io.Discard)
	if data, _ := os.ReadFile(filepath.Join(top, "sub", "b.txt")); err != nil || done != "" || string(data) != "mine" {
		t.Errorf("%s, %v: %q", done, err, data)
	}
}

// git refuses a path in use, and an existing branch is reused.
func TestWorktreeRefused(t *testing.T) {
	t.Parallel()
	team, repo := teamtest.RepositoryTeam(t, nil)
	teamtest.GitIn(t, repo, "add", ".")
	teamtest.GitIn(t, repo, "commit", "-q", "-m", "first")
	teamtest.GitIn(t, repo, "branch", "atm/bob")
	top := filepath.Join(repo, ".atm", "main", ".worktrees", "bob")
	teamtest.Must(t, os.MkdirAll(top, 0o700))
	teamtest.Must(t, os.WriteFile(filepath.Join(top, "a"), nil, 0o600))
	for cwd, why := range map[string]string{".": "already exists", "gone": "there is no directory", "/": "is not in a git repository"} {
		if _, _, err := team.Worktree(t.Context(), teamtest.GitEnviron(t), "bob", config.Member{Cwd: cwd}, io.Discard); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", cwd, err)
		}
	}
	teamtest.Must(t, os.Remove(filepath.Join(top, "a")))
	_, done, err := team.Worktree(t.Context(), teamtest.GitEnviron(t), "bob", config.Member{Cwd: "."}, io.Discard)
	if err != nil || !strings.Contains(done, "on branch atm/bob, which already existed") {
		t.Error(done, err)
	}
}

// A new worktree gets the ignored files that .worktreeinclude names, and its setup runs there once it has them. What did not
// come to its end is done again; a worktree that was there stays as it is.
func TestWorktreeSetup(t *testing.T) {
	t.Parallel()
	team, repo := teamtest.RepositoryTeam(t, nil)
	write := func(name, text string) {
		teamtest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(repo, name)), 0o700))
		teamtest.Must(t, os.WriteFile(filepath.Join(repo, name), []byte(text), 0o640))
	}
	write(".gitignore", "*.env\n/cache/\n/secret\n")
	write(".worktreeinclude", "*.env\n/cache/\nnotes\n.atm\n")
	teamtest.GitIn(t, repo, "add", ".")
	teamtest.GitIn(t, repo, "commit", "-q", "-m", "first")
	write("sub/a.env", "A=1")
	write("cache/deep/b", "b")
	write("secret", "not named")
	write("notes", "not ignored")
	teamtest.Must(t, os.Symlink("/etc/passwd", filepath.Join(repo, "link.env")))
	top := filepath.Join(repo, ".atm", "main", ".worktrees", "bob")
	var said strings.Builder
	start := func(name wire.Name, command ...string) (string, error) {
		m := config.Member{Env: map[string]string{"DEPS": "all"}, Setup: command}
		_, done, err := team.Worktree(t.Context(), append(teamtest.GitEnviron(t), "GIT_DIR=/nowhere"), name, m, &said)
		return done, err
	}
	if _, err := start("bob", "sh", "-c", "echo trying; exit 3"); err == nil || !strings.Contains(err.Error(), "setup sh: exit status 3") || said.String() != "trying\n" {
		t.Errorf("%v, %q", err, said.String())
	}
	done, err := start("bob", "sh", "-c", `cat sub/a.env; echo "$DEPS" >>made`)
	if err != nil || !strings.Contains(done, "ran its setup") || !strings.HasSuffix(said.String(), "A=1") {
		t.Errorf("%q, %v, %q", done, err, said.String())
	}
	if done, err := start("bob", "sh", "-c", "echo again >>made"); done != "" || err != nil {
		t.Errorf("%q, %v", done, err)
	}
	for name, want := range map[string]string{"sub/a.env": "A=1", "cache/deep/b": "b", "made": "all\n", "secret": "", "notes": "", "link.env": "", ".atm": ""} {
		if got, _ := os.ReadFile(filepath.Join(top, name)); string(got) != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if info, err := os.Stat(filepath.Join(top, "sub/a.env")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(top, ".atm")); err == nil {
		t.Error("the root was copied")
	}
}
