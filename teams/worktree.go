package teams

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/teams/git"
	"github.com/agentteammail/atm/wire"
)

// Worktree is a member's own git worktree, <team>/.worktrees/<agent>, at first
// on branch atm/<agent>. It lies in the root, which atm has put out of the
// repository's sight. atm makes it and never touches or removes it afterwards.
type Worktree struct {
	Top  string // the worktree
	Dir  string // where in it the member works
	Done string // what was done, for people; "": it was there
}

const worktreesDir = ".worktrees"

// WorktreeError says why there is no worktree for a member, and what helps.
type WorktreeError struct {
	Agent wire.Name
	Cause error
	Hint  string // a command; "": none
}

func (e *WorktreeError) Error() string {
	return fmt.Sprintf("no worktree for %s: %v", e.Agent, e.Cause)
}
func (e *WorktreeError) Unwrap() error { return e.Cause }

// Worktree returns a member's worktree: the one that is there, else a new one of
// the repository that cwd (as in team.toml) lies in. git gets environ without
// what would lead it to another repository.
func (t *Team) Worktree(ctx context.Context, environ []string, name wire.Name, cwd string) (Worktree, error) {
	c, rel, err := t.repositoryOf(cwd)
	if err != nil {
		return Worktree{}, &WorktreeError{Agent: name, Cause: err, Hint: "git init, or worktree = false, or another cwd in team.toml: atm doctor names the line"}
	}
	if err := t.Dir().Mkdir(worktreesDir); err != nil {
		return Worktree{}, err
	}
	// Two starts at once; a first checkout may take its time.
	lock, err := t.Locks().Lock(ctx, string(name)+".worktree", lockfile.Exclusive, 10*time.Minute, nil)
	if err != nil {
		return Worktree{}, err
	}
	defer lock.Unlock()
	w := Worktree{Top: t.Dir().Join(worktreesDir + "/" + string(name))}
	w.Dir = filepath.Join(w.Top, rel)
	w.Done, err = git.AddWorktree(ctx, environ, c, w.Top, "atm/"+string(name))
	if ctx.Err() != nil {
		return Worktree{}, ctx.Err()
	}
	if err != nil {
		return Worktree{}, &WorktreeError{Agent: name, Cause: err, Hint: "git -C " + quote(c.Top) + " worktree list"}
	}
	if info, err := os.Stat(w.Dir); err != nil || !info.IsDir() {
		cause := fmt.Errorf("%s is not in its worktree %s: what is not committed on its branch is not there", printable(rel), printable(w.Top))
		return Worktree{}, &WorktreeError{Agent: name, Cause: cause, Hint: "git -C " + quote(w.Top) + " status"}
	}
	return w, nil
}
