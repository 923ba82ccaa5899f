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

// ErrTracked says that a git repository tracks a file, or a link to it. Such a file
// is others' as well.
var ErrTracked = errors.New("is tracked by the repository")

// checkUntracked makes sure that no repository tracks a file, nor the link that
// leads to it.
func checkUntracked(path, real string) error {
	dir, err := realPath(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, at := range []string{real, filepath.Join(dir, filepath.Base(path))} {
		for _, top := range worktreesAround(filepath.Dir(at)) {
			tracked, err := isTracked(top, at)
			if err != nil {
				return fmt.Errorf("find out whether %s is tracked: %w", path, err)
			}
			if tracked {
				return fmt.Errorf("%s %w at %s: it was left alone", at, ErrTracked, top)
			}
		}
	}
	return nil
}

// worktreesAround are the directories with a .git that a directory lies in, the
// nearest first: an outer repository may have tracked a file before an inner
// one was made.
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

func isTracked(top, path string) (bool, error) {
	_, err := git(top, "ls-files", "--error-unmatch", "--", path)
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == 1 || strings.Contains(err.Error(), "not a git repository")) {
		return false, nil
	}
	return err == nil, err
}

// git runs git in a directory, whatever repository the caller's environment
// names, and without anything that the repository asks to be run.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"--literal-pathspecs", "-c", "core.fsmonitor=false", "-C", dir}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil && said.Len() > 0 {
		err = fmt.Errorf("git %s: %s: %w", args[0], strings.TrimSpace(said.String()), err)
	}
	return string(out), err
}

// localDir is where this worktree's own configuration lies: its top, or the
// working directory where there is no worktree.
func (p *Installer) localDir() (string, error) {
	dir, err := realPath(p.Dir)
	if tops := worktreesAround(dir); err == nil && len(tops) > 0 {
		return tops[0], nil
	}
	return dir, err
}

// excludeEdit is the repository's exclude file with a line for each of these
// files, so that git does not show them. All worktrees share it. ok is false
// where there is no repository.
func excludeEdit(top, tool string, files []edit) (e edit, ok bool) {
	out, err := git(top, "rev-parse", "--git-path", "info/exclude")
	if err != nil {
		return e, false
	}
	e.path = strings.TrimSpace(out)
	if !filepath.IsAbs(e.path) {
		e.path = filepath.Join(top, e.path)
	}
	lines := ""
	for _, f := range files {
		if rel, err := filepath.Rel(top, f.path); err == nil {
			lines += "/" + filepath.ToSlash(rel) + "\n"
		}
	}
	return blockEdit(e.path, "#", tool, lines, "git does not see "+strings.Join(strings.Fields(lines), ", "), "git sees them again"), true
}
