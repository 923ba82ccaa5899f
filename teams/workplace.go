package teams

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// A Workplace is the git worktree of a member's own.
//
//	<team>/.worktrees/<agent>/           the worktree, on branch atm/<agent> at first
//	<team>/.worktrees/.<agent>.making    there until it was first checked out whole;
//	                                     locked by the gits that are at it
//
// It lies in the root: atm has put that out of the repository's sight, what
// lists files passes over names with a dot, and a program that trusts the
// repository trusts what is in it. A directory that is there is used as it is,
// whatever its branch is by now. Nothing in it is ever overwritten: only one
// that still has its .making and no index was never anybody's.
type Workplace struct {
	Top  string // the worktree
	Dir  string // where in it the member works
	Done string // what was done for it, for people; "": it was there
}

const workplacesDir = ".worktrees"

// A WorkplaceError says why there is no worktree for a member, and what helps.
type WorkplaceError struct {
	Agent wire.Name
	Why   string
	Hint  string // a command; "": none
	cause error
}

func (e *WorkplaceError) Error() string { return fmt.Sprintf("no worktree for %s: %s", e.Agent, e.Why) }

// Unwrap is what failed, nil where nothing did.
func (e *WorkplaceError) Unwrap() error { return e.cause }

// Workplace gives a member its worktree: the one that is there, else a new one
// of the repository that cwd lies in. cwd is as in team.toml.
func (t *Team) Workplace(ctx context.Context, git Git, name wire.Name, cwd string) (Workplace, error) {
	s, err := t.site(git, name, cwd)
	if err != nil {
		return Workplace{}, err
	}
	if how, err := s.look(); err == nil && how == standing {
		return s.workplace("")
	}
	unlock, err := t.lockWorkplace(ctx, name)
	if err != nil {
		return Workplace{}, err
	}
	defer unlock()
	cutOff := ""
	for range 4 { // each step leads to a state that is looked at anew
		how, err := s.look()
		if err != nil {
			return Workplace{}, err
		}
		switch how {
		case standing:
			return s.workplace(cutOff)
		case vacant:
			done, err := s.make(ctx)
			if err != nil {
				return Workplace{}, err
			}
			return s.workplace(done)
		case halfMade:
			if err := s.resume(ctx); err != nil {
				return Workplace{}, err
			}
			cutOff = "the making of its worktree had been cut off, and is finished now"
		case lost:
			if err := s.restore(ctx); err != nil {
				return Workplace{}, err
			}
			return s.workplace("its worktree had been removed by hand, and is back: what was committed or staged is there")
		case astray:
			_, err := git.run(ctx, s.from.Top, "worktree", "repair", "--", s.top)
			var said *gitError
			if errors.As(err, &said) {
				return Workplace{}, s.astray()
			}
			if err != nil {
				return Workplace{}, s.failed(err, "")
			}
		}
	}
	return Workplace{}, s.astray()
}

// WorkDir is the directory that a member's cwd means.
func (t *Team) WorkDir(cwd string) string {
	if filepath.IsAbs(cwd) {
		return cwd
	}
	return filepath.Join(filepath.Dir(t.root.Path), cwd)
}

// repositoryOf is the checkout that a member's cwd lies in, and where in it.
func (t *Team) repositoryOf(cwd string) (c Checkout, rel string, err error) {
	dir := t.WorkDir(cwd)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return c, "", fmt.Errorf("its directory %s is not there", shown(dir))
	}
	all := CheckoutsAt(real)
	if len(all) == 0 {
		return c, "", fmt.Errorf("%s is in no git repository", shown(real))
	}
	c = all[0]
	if !isRepository(c.Common) {
		return c, "", fmt.Errorf("the .git in %s leads to no repository", shown(c.Top))
	}
	rel, err = filepath.Rel(c.Top, real)
	return c, rel, err
}

// workplace is the answer, once there is a worktree.
func (s *site) workplace(done string) (Workplace, error) {
	w := Workplace{Top: s.top, Dir: filepath.Join(s.top, s.rel), Done: done}
	if info, err := os.Stat(w.Dir); err != nil || !info.IsDir() {
		return w, s.no("git -C "+quote(s.top)+" status", "%s is not in its worktree %s: what is not committed on its branch is not there", shown(s.rel), shown(s.top))
	}
	return w, nil
}

// makingWithin is how long one waits for another who makes the same worktree: a
// first checkout may take its time.
const makingWithin = 10 * time.Minute

// lockWorkplace keeps others from making or removing a member's worktree.
func (t *Team) lockWorkplace(ctx context.Context, name wire.Name) (unlock func(), err error) {
	l, err := t.Locks().Lock(ctx, string(name)+".worktree", lockfile.Exclusive, makingWithin, nil)
	if err != nil {
		return nil, err
	}
	return func() { l.Unlock() }, nil
}
