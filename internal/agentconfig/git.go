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

// gitIn runs git without anything that a repository asks to be run.
func gitIn(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", append([]string{"-c", "core.fsmonitor=false", "-C", dir}, args...)...)
	cmd.Env = append(git.WithoutRepository(os.Environ()), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	return cmd
}

// checkUntracked makes sure that no repository tracks a file, nor the link that leads to it.
func checkUntracked(path, real string) error {
	dir, _ := realPath(filepath.Dir(path)) // whose links path itself was found through
	for _, at := range []string{real, filepath.Join(dir, filepath.Base(path))} {
		// An outer repository may have tracked it before an inner one was made.
		for c, ok := git.Nearest(filepath.Dir(at)); ok; c, ok = git.Nearest(filepath.Dir(c.Top)) {
			cmd := gitIn(c.Top, "--literal-pathspecs", "ls-files", "--error-unmatch", "--", at)
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

// excludeEdits put a line for each of these files into the repository's exclude file, so that git does not show them:
// none without a repository. All worktrees share it: nothing is taken out while another has such a file.
func excludeEdits(top string, r Request, files []edit) (edits []edit) {
	c, _ := git.At(top)
	if !c.HasRepository() {
		return nil
	}
	list, _ := gitIn(top, "worktree", "list", "--porcelain").Output()
	for _, f := range files {
		rel, _ := filepath.Rel(top, f.path) // it lies below
		for line := range strings.Lines(string(list)) {
			tree, isTree := strings.CutPrefix(strings.TrimSpace(line), "worktree ")
			other := filepath.Join(tree, rel)
			if _, err := os.Lstat(other); r.isRemoval && isTree && err == nil && other != f.path {
				return nil
			}
		}
		name := "/" + filepath.ToSlash(rel)
		lines := "# atm install " + r.Tool + "\n" + name + "\n"
		if f.isServer {
			lines = "# atm install " + r.Tool + " --mcp\n" + name + "\n"
		}
		edits = append(edits, edit{filepath.Join(c.Common, "info", "exclude"), f.isServer, func(f *file) error {
			if text := string(f.after); f.isRemoval {
				f.set(strings.ReplaceAll(text, lines, ""), "git sees "+name+" again")
			} else if !strings.Contains(text, lines) {
				f.set(endLine(text)+lines, "git does not see "+name)
			}
			return nil
		}})
	}
	return edits
}
