package teams

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/git"
	"github.com/agentteammail/atm/wire"
)

// Worktree is where a member works in its own git worktree, <team>/.worktrees/<agent>, at first on branch atm/<agent>:
// the one that is there, else a new one of the repository that cwd (as in team.toml) lies in. done says to people what
// was done, "" where it was there. git gets environ without what would lead it to another repository.
//
// The worktree lies in the root, which atm has put out of the repository's sight. atm makes it and never touches or
// removes it afterwards.
func (t *Team) Worktree(ctx context.Context, environ []string, name wire.Name, cwd string) (dir, done string, err error) {
	c, rel, err := t.repositoryOf(cwd)
	if err != nil {
		return "", "", fmt.Errorf("no worktree for %s: %w", name, err)
	}
	if err := t.Dir().Mkdir(".worktrees"); err != nil {
		return "", "", err
	}
	// One at a time: git trips over a worktree that another one is making. A first checkout may take its time.
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
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", "", fmt.Errorf("%s is not in its worktree %s: what is not committed on its branch is not there", rel, top)
	}
	return dir, done, nil
}

// WorkDir is the directory that a member's cwd means.
func (t *Team) WorkDir(cwd string) string {
	if filepath.IsAbs(cwd) {
		return cwd
	}
	return filepath.Join(filepath.Dir(t.root.Path), cwd)
}

// CheckDirectory says what is missing of the directory that a member is started in, and
// which key of team.toml asks for it.
func (t *Team) CheckDirectory(name wire.Name, m config.Member) (key string, err error) {
	if m.Worktree && !m.Person {
		if _, _, err = t.repositoryOf(m.Cwd); err != nil {
			err = fmt.Errorf("%s has worktree = true, but %w", name, err)
		}
		return "worktree", err
	}
	if info, e := os.Stat(t.WorkDir(m.Cwd)); e != nil || !info.IsDir() {
		err = fmt.Errorf("cwd of %s: %s is not there", name, t.WorkDir(m.Cwd))
	}
	return "cwd", err
}

func (t *Team) repositoryOf(cwd string) (c git.Checkout, rel string, err error) {
	dir, err := filepath.EvalSymlinks(t.WorkDir(cwd))
	if err != nil {
		return c, "", fmt.Errorf("its directory %s is not there", t.WorkDir(cwd))
	}
	c, ok := git.Nearest(dir)
	if !ok || !c.HasRepository() {
		return c, "", fmt.Errorf("%s is in no git repository", dir)
	}
	rel, err = filepath.Rel(c.Top, dir)
	return c, rel, err
}
