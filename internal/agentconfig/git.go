package agentconfig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/teams/git"
)

// ErrTracked says that a git repository tracks a file, or a link to it. Such a file is others' as well.
var ErrTracked = errors.New("is tracked by the repository")

// checkUntracked makes sure that no repository tracks a file, nor the link that leads to it. It runs git without
// anything that a repository asks to be run.
func checkUntracked(path, real string) error {
	dir, err := realPath(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, at := range []string{real, filepath.Join(dir, filepath.Base(path))} {
		// An outer repository may have tracked it before an inner one was made.
		for c, ok := git.Nearest(filepath.Dir(at)); ok; c, ok = git.Nearest(filepath.Dir(c.Top)) {
			cmd := exec.Command("git", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-C", c.Top, "ls-files", "--error-unmatch", "--", at)
			cmd.Env = append(git.WithoutRepository(os.Environ()), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
			said, err := cmd.CombinedOutput()
			if err == nil {
				return fmt.Errorf("%s %w at %s: it was left alone", at, ErrTracked, c.Top)
			}
			if cmd.ProcessState.ExitCode() != 1 && !strings.Contains(string(said), "not a git repository") {
				return fmt.Errorf("find out whether %s is tracked: git ls-files: %s: %w", path, bytes.TrimSpace(said), err)
			}
			if c.Top == filepath.Dir(c.Top) {
				break
			}
		}
	}
	return nil
}

// localDir is where this worktree's own configuration lies: its top, or the working directory where
// there is no worktree.
func (p *Installer) localDir() (string, error) {
	dir, err := realPath(p.Dir)
	if c, ok := git.Nearest(dir); err == nil && ok {
		return c.Top, nil
	}
	return dir, err
}

// excludeEdit is the edit of the repository's exclude file, a line for each of these files, so that git does
// not show them: none without a repository. All worktrees share it.
func excludeEdit(top, tool string, files []edit) []edit {
	c, _ := git.At(top)
	if !c.HasRepository() {
		return nil
	}
	lines := ""
	for _, f := range files {
		if rel, err := filepath.Rel(top, f.path); err == nil {
			lines += "/" + filepath.ToSlash(rel) + "\n"
		}
	}
	said := "git does not see " + strings.Join(strings.Fields(lines), ", ")
	return []edit{blockEdit(filepath.Join(c.Common, "info", "exclude"), "#", tool, lines, said, "git sees them again")}
}
