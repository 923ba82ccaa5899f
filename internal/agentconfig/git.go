package agentconfig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrTracked says that a git repository tracks a file, or a link to it. Such a file is others' as well.
var ErrTracked = errors.New("is tracked by the repository")

// checkUntracked makes sure that no repository tracks a file, nor the link that leads to it.
func checkUntracked(path, real string) error {
	dir, err := realPath(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, at := range []string{real, filepath.Join(dir, filepath.Base(path))} {
		for _, top := range worktreesAround(filepath.Dir(at)) {
			_, err := git(top, "ls-files", "--error-unmatch", "--", at)
			var exit *exec.ExitError
			switch {
			case err == nil:
				return fmt.Errorf("%s %w at %s: it was left alone", at, ErrTracked, top)
			case errors.As(err, &exit) && exit.ExitCode() == 1, strings.Contains(err.Error(), "not a git repository"):
			default:
				return fmt.Errorf("find out whether %s is tracked: %w", path, err)
			}
		}
	}
	return nil
}

// worktreesAround are the directories with a .git that a directory lies in, the nearest first: an outer
// repository may have tracked a file before an inner one was made.
func worktreesAround(dir string) (tops []string) {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			tops = append(tops, dir)
		}
		if dir == filepath.Dir(dir) {
			return tops
		}
	}
}

// git runs git in a directory, whatever repository the caller's environment names, and without anything
// that the repository asks to be run.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"--literal-pathspecs", "-c", "core.fsmonitor=false", "-C", dir}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("git %s: %s: %w", args[0], strings.TrimSpace(string(exit.Stderr)), err)
	}
	return strings.TrimSpace(string(out)), err
}

// localDir is where this worktree's own configuration lies: its top, or the working directory where
// there is no worktree.
func (p *Installer) localDir() (string, error) {
	dir, err := realPath(p.Dir)
	if tops := worktreesAround(dir); err == nil && len(tops) > 0 {
		return tops[0], nil
	}
	return dir, err
}

// excludeEdit is the edit of the repository's exclude file, a line for each of these files, so that git does
// not show them: none without a repository. All worktrees share it.
func excludeEdit(top, tool string, files []edit) []edit {
	path, err := git(top, "rev-parse", "--git-path", "info/exclude")
	if err != nil {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(top, path)
	}
	lines := ""
	for _, f := range files {
		if rel, err := filepath.Rel(top, f.path); err == nil {
			lines += "/" + filepath.ToSlash(rel) + "\n"
		}
	}
	said := "git does not see " + strings.Join(strings.Fields(lines), ", ")
	return []edit{blockEdit(path, "#", tool, lines, said, "git sees them again")}
}
