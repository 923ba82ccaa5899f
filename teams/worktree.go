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

// Worktree is a member's own git worktree, <team>/.worktrees/<agent>, at first on branch atm/<agent>. It lies in the
// root, which atm has put out of the repository's sight. atm makes it and never touches or removes it afterwards.
type Worktree struct {
	Top  string // the worktree
	Dir  string // where in it the member works
	Done string // what was done, for people; "": it was there
}

// WorktreesDir is where the worktrees of a team's members lie, in its directory.
const WorktreesDir = ".worktrees"

// Worktree returns a member's worktree: the one that is there, else a new one of the repository that cwd (as in
// team.toml) lies in. git gets environ without what would lead it to another repository.
func (t *Team) Worktree(ctx context.Context, environ []string, name wire.Name, cwd string) (w Worktree, err error) {
	c, rel, err := t.repositoryOf(cwd)
	if err != nil {
		return w, fmt.Errorf("no worktree for %s: %w", name, err)
	}
	if err := t.Dir().Mkdir(WorktreesDir); err != nil {
		return w, err
	}
	// One at a time: git trips over a worktree that another one is making. A first checkout may take its time.
	lock, err := t.Locks().Lock(ctx, "worktrees", lockfile.Exclusive, 10*time.Minute, nil)
	if err != nil {
		return w, err
	}
	defer lock.Unlock()
	w.Top = t.Dir().Join(WorktreesDir + "/" + string(name))
	w.Dir = filepath.Join(w.Top, rel)
	if w.Done, err = git.AddWorktree(ctx, environ, c, w.Top, "atm/"+string(name)); err != nil {
		return w, fmt.Errorf("no worktree for %s: %w", name, err)
	}
	if info, err := os.Stat(w.Dir); err != nil || !info.IsDir() {
		return w, fmt.Errorf("%s is not in its worktree %s: what is not committed on its branch is not there",
			rel, w.Top)
	}
	return w, nil
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

// HasWorktrees reports whether a member without a cwd could have a git worktree.
func (t *Team) HasWorktrees() bool {
	_, _, err := t.repositoryOf("")
	return err == nil
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
