package teamdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
)

// Concurrent starts make a member's worktree once, and later starts leave it alone, whatever is in it.
func TestWorktree(t *testing.T) {
	t.Parallel()
	team, repo := teamtest.RepositoryTeam(t, nil)
	if _, _, err := team.Worktree(t.Context(), teamtest.GitEnviron(t), "bob", "."); err == nil {
		t.Errorf("there is no commit yet: %v", err)
	}
	teamtest.GitIn(t, repo, "add", ".")
	teamtest.GitIn(t, repo, "commit", "-q", "-m", "first")
	environ := append(teamtest.GitEnviron(t), "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere") // as in a git hook
	made := make([]string, 4)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			dir, done, err := team.Worktree(t.Context(), environ, "bob", "sub")
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
	_, done, err := team.Worktree(t.Context(), nil, "bob", "")
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
		if _, _, err := team.Worktree(t.Context(), teamtest.GitEnviron(t), "bob", cwd); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", cwd, err)
		}
	}
	teamtest.Must(t, os.Remove(filepath.Join(top, "a")))
	_, done, err := team.Worktree(t.Context(), teamtest.GitEnviron(t), "bob", ".")
	if err != nil || !strings.Contains(done, "on branch atm/bob, which already existed") {
		t.Error(done, err)
	}
}
