package teamdir

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

// gitIn runs git in dir without the configuration of the user who runs the test.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = gitEnviron(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func gitEnviron(t *testing.T) []string {
	return append(git.CleanEnviron(os.Environ()), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
}

// repositoryTeam makes a team whose root is in a new repository and excluded from git.
func repositoryTeam(t *testing.T) (team *Team, repo string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	repo = filepath.Join(top, "repo")
	must(t, os.MkdirAll(filepath.Join(repo, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(repo, "sub", "b.txt"), []byte("two"), 0o600))
	gitIn(t, repo, "init", "-q", "-b", "main")
	path := filepath.Join(repo, ".atm")
	_, err = rootdir.Make(path)
	must(t, err)
	err = git.Exclude(path)
	must(t, err)
	root, err := OpenFound(rootdir.Found{Path: path, Source: rootdir.FromFlag})
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return newTeam(t, root, "bob"), repo
}

// Concurrent starts make a member's worktree once, and later starts leave it alone, whatever is in it.
func TestWorktree(t *testing.T) {
	t.Parallel()
	team, repo := repositoryTeam(t)
	if _, _, err := team.Worktree(t.Context(), gitEnviron(t), "bob", "."); err == nil {
		t.Errorf("there is no commit yet: %v", err)
	}
	gitIn(t, repo, "add", ".")
	gitIn(t, repo, "commit", "-q", "-m", "first")
	environ := append(gitEnviron(t), "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere") // as in a git hook
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
	if got := gitIn(t, top, "status", "--porcelain", "--branch"); got != "## atm/bob" {
		t.Error(got)
	}
	if got := gitIn(t, repo, "status", "--porcelain"); got != "" {
		t.Errorf("the repository sees %q", got)
	}
	// Processes in it find the same root without ATM_ROOT.
	found, skipped, err := rootdir.Find(rootdir.Place{Dir: filepath.Join(top, "sub"), UID: os.Getuid()})
	if err != nil || found.Path != filepath.Join(repo, ".atm") || len(skipped) > 0 {
		t.Error(found, skipped, err)
	}
	must(t, os.WriteFile(filepath.Join(top, "sub", "b.txt"), []byte("mine"), 0o600))
	gitIn(t, top, "switch", "-q", "-c", "elsewhere")
	_, done, err := team.Worktree(t.Context(), nil, "bob", "")
	if data, _ := os.ReadFile(filepath.Join(top, "sub", "b.txt")); err != nil || done != "" || string(data) != "mine" {
		t.Errorf("%s, %v: %q", done, err, data)
	}
}

// git refuses a path in use, and an existing branch is reused.
func TestWorktreeRefused(t *testing.T) {
	t.Parallel()
	team, repo := repositoryTeam(t)
	gitIn(t, repo, "add", ".")
	gitIn(t, repo, "commit", "-q", "-m", "first")
	gitIn(t, repo, "branch", "atm/bob")
	top := filepath.Join(repo, ".atm", "main", ".worktrees", "bob")
	must(t, os.MkdirAll(top, 0o700))
	must(t, os.WriteFile(filepath.Join(top, "a"), nil, 0o600))
	for cwd, why := range map[string]string{".": "already exists", "gone": "there is no directory", "/": "is not in a git repository"} {
		if _, _, err := team.Worktree(t.Context(), gitEnviron(t), "bob", cwd); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", cwd, err)
		}
	}
	must(t, os.Remove(filepath.Join(top, "a")))
	_, done, err := team.Worktree(t.Context(), gitEnviron(t), "bob", ".")
	if err != nil || !strings.Contains(done, "on branch atm/bob, which already existed") {
		t.Error(done, err)
	}
}
