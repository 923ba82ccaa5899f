package teamdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/wire"
)

// Worktree returns a member's working directory in its own git worktree, <team>/.worktrees/<agent>. Unless the worktree
// exists, it adds one to the repository that contains the member's cwd, on branch atm/<agent>, copies into it what
// git.IncludeFile names, and runs the member's setup there, which writes to output; done says so. What did not come to its
// end is done again at the next call, before which nothing counts as ready. git and setup run with environ.
//
// The repository's exclude file hides it, as all of the root. atm never changes or removes an existing worktree.
func (t *Team) Worktree(ctx context.Context, environ []string, name wire.Name, m config.Member, output io.Writer) (dir, done string, err error) {
	c, rel, err := t.repositoryOf(m.Cwd)
	if err != nil {
		return "", "", fmt.Errorf("no worktree for %s: %w", name, err)
	}
	if err := t.Dir().Mkdir(".worktrees"); err != nil {
		return "", "", err
	}
	// git fails while another git adds a worktree. A first checkout may take long, and a setup.
	lock, err := t.Locks().Lock(ctx, "worktrees", lockfile.Exclusive, time.Hour, nil)
	if err != nil {
		return "", "", err
	}
	defer lock.Unlock()
	top, unready := t.Dir().Join(".worktrees/"+string(name)), ".worktrees/."+string(name)+".unready"
	dir = filepath.Join(top, rel)
	if _, err := os.Lstat(top); errors.Is(err, fs.ErrNotExist) {
		if err := t.Dir().Replace(unready, nil, false); err != nil {
			return "", "", err
		}
	}
	if done, err = git.AddWorktree(ctx, environ, c, top, "atm/"+string(name)); err != nil {
		if _, missing := os.Lstat(top); errors.Is(missing, fs.ErrNotExist) {
			t.Dir().Remove(unready)
		}
		return "", "", fmt.Errorf("no worktree for %s: %w", name, err)
	}
	if _, err := os.Stat(dir); err != nil {
		return "", "", fmt.Errorf("%s is not in its worktree %s, which has only committed files", rel, top)
	}
	if isUnready, err := t.Dir().Exists(unready); err != nil || !isUnready {
		return dir, done, err
	}
	n, err := git.Include(ctx, environ, c, top, t.root.Path)
	if n > 0 {
		done += fmt.Sprintf("; copied %d ignored files that %s names", n, git.IncludeFile)
	}
	if err == nil && len(m.Setup) > 0 {
		done += "; ran its setup"
		err = setUp(ctx, environ, dir, m, output)
	}
	if err != nil {
		return "", "", fmt.Errorf("the worktree of %s is not ready: %w", name, err)
	}
	return dir, done, t.Dir().Remove(unready)
}

func setUp(ctx context.Context, environ []string, dir string, m config.Member, output io.Writer) error {
	cmd := exec.CommandContext(ctx, m.Setup[0], m.Setup[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, git.CleanEnviron(environ), output, output, 5*time.Second
	for k, v := range m.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	lockfile.Waits("setup")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("setup %s: %w", m.Setup[0], err)
	}
	return nil
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
