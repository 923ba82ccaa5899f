package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrNoCommit says that a repository has nothing that a worktree could have.
var ErrNoCommit = errors.New("has no commit yet")

// AddWorktree adds a worktree of c's repository at path, on the given branch, which it makes from c's HEAD if there is
// none. An existing worktree of that repository is kept, whatever its branch, and done is "". git refuses a path that
// is otherwise in use.
//
// git runs with the caller's environment environ, and without the repository's hooks. Two things that command forbids a
// checkout needs: the repository's filters (git-lfs, git-crypt), which git runs as the configuration says, and in a partial
// clone its remote. Both are programs that the repository's owner has chosen, as the member's command is, which atm
// starts next in there: whoever accepts worktree = true accepts that.
func AddWorktree(ctx context.Context, environ []string, c Checkout, path, branch string) (done string, err error) {
	if existing, ok := At(path); ok && existing.Common == c.Common && existing.gitDir != c.gitDir {
		return "", nil
	}
	if _, err := run(ctx, environ, c.Top, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
		return "", fmt.Errorf("%s %w", c.Top, ErrNoCommit)
	}
	done = fmt.Sprintf("made its worktree %s on branch %s", path, branch)
	add := []string{"worktree", "add", "--no-track", "-b", branch, "--", path, "HEAD"}
	if _, err := run(ctx, environ, c.Top, "show-ref", "--verify", "--quiet", "refs/heads/"+branch); err == nil {
		done += ", which already existed"
		add = []string{"worktree", "add", "--", path, branch}
	}
	cmd := command(ctx, environ, c.Top, add...)
	cmd.Env = append(cmd.Env, "GIT_NO_LAZY_FETCH=0")
	cmd.Env = slices.DeleteFunc(cmd.Env, func(pair string) bool { return pair == noProtocol })
	_, err = output(ctx, cmd, add[0])
	return done, err
}
