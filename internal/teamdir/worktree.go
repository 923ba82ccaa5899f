package teamdir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/wire"
)

// Worktree returns a member's working directory in its own git worktree, <team>/.worktrees/<agent>. Unless the worktree
// exists, it adds one to the repository that contains cwd (as in team.toml), on branch atm/<agent>, and done says so.
// git runs with environ.
//
// The repository's exclude file hides it, as all of the root. atm never changes or removes an existing worktree.
func (t *Team) Worktree(ctx context.Context, environ []string, name wire.Name, cwd string) (dir, done string, err error) {
	c, rel, err := t.repositoryOf(cwd)
	if err != nil {
		return "", "", fmt.Errorf("no worktree for %s: %w", name, err)
	}
	if err := t.Dir().Mkdir(".worktrees"); err != nil {
		return "", "", err
	}
	// git fails while another git adds a worktree. A first checkout may take long.
	lock, err := t.Locks().Lock(ctx, "worktrees", lockfile.Exclusive, 10*time.Minute, nil)
	if err != nil {
		return "", "", err
	}
	defer lock.Unlock()
	top := t.Dir().Join(".worktrees/" + string(name))
	if done, err = git.AddWorktree(ctx, environ, c, top, "atm/"+string(name)); err != nil {
		return "", "", fmt.Errorf("no worktree for %s: %w", name, err)
	}
	dir = filepath.Join(top, rel)
	if _, err := os.Stat(dir); err != nil {
		return "", "", fmt.Errorf("%s is not in its worktree %s, which has only committed files", rel, top)
	}
	return dir, done, nil
}

// WorkDir resolves a member's cwd.
func (t *Team) WorkDir(cwd string) string {
	if filepath.IsAbs(cwd) {
		return cwd
	}
	return filepath.Join(filepath.Dir(t.root.Path), cwd)
}

// CheckDirectory returns an error that names the key of team.toml if the directory or repository that a member needs does
// not exist.
func (t *Team) CheckDirectory(name wire.Name, m config.Member) error {
	if m.Worktree {
		if _, _, err := t.repositoryOf(m.Cwd); err != nil {
			return fmt.Errorf("members.%s.worktree: %w", name, err)
		}
		return nil
	}
	if info, err := os.Stat(t.WorkDir(m.Cwd)); err != nil || !info.IsDir() {
		return fmt.Errorf("members.%s.cwd: there is no directory %s", name, t.WorkDir(m.Cwd))
	}
	return nil
}

func (t *Team) repositoryOf(cwd string) (c git.Checkout, rel string, err error) {
	dir, err := filepath.EvalSymlinks(t.WorkDir(cwd))
	if err != nil {
		return c, "", fmt.Errorf("there is no directory %s", t.WorkDir(cwd))
	}
	c, ok := git.Nearest(dir)
	if !ok || c.Common == "" {
		return c, "", fmt.Errorf("%s is not in a git repository", dir)
	}
	rel, err = filepath.Rel(c.Top, dir)
	return c, rel, err
}
