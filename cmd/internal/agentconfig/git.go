package agentconfig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir/git"
)

// ErrTracked says that a git repository tracks a file, or a link to it. Such a file is shared with other people.
var ErrTracked = errors.New("is tracked by git")

// ErrLeadsOut says that a file of this worktree is somewhere else: a repository can bring such a link along.
var ErrLeadsOut = errors.New("leads out of this worktree through a link")

// checkPlace returns an error if a file is to be in this worktree and is not.
func checkPlace(r Request, top string, f *file) error {
	isBelow := func(path string) bool {
		rel, err := filepath.Rel(top, path)
		return err == nil && filepath.IsLocal(rel)
	}
	if r.Local && isBelow(f.path) && !isBelow(f.real) {
		return fmt.Errorf("%s %w, to %s: atm left it alone", f.path, ErrLeadsOut, f.real)
	}
	return nil
}

// gitIn makes a git command that runs no program named by the repository's configuration.
func gitIn(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", append([]string{"-c", "core.fsmonitor=false", "-C", dir}, args...)...)
	cmd.Env = append(git.CleanEnviron(os.Environ()), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	return cmd
}

// checkUntracked returns an error if a repository tracks a file, or the link that leads to it.
func checkUntracked(path, real string) error {
	dir, _ := durable.RealPath(filepath.Dir(path)) // read has resolved path already
	for _, at := range []string{real, filepath.Join(dir, filepath.Base(path))} {
		c, ok := git.Nearest(filepath.Dir(at))
		if !ok || !c.HasRepository() {
			continue
		}
		cmd := gitIn(c.Top, "--literal-pathspecs", "ls-files", "--error-unmatch", "--", at)
		output, err := cmd.CombinedOutput()
		if err == nil {
			return fmt.Errorf("%s %w in %s: atm left it alone", at, ErrTracked, c.Top)
		}
		if cmd.ProcessState.ExitCode() != 1 {
			return fmt.Errorf("find out whether %s is tracked: git ls-files: %s: %w", path, bytes.TrimSpace(output), err)
		}
	}
	return nil
}

// excludeEdits hides the files of the edits from git: each gets a line in the repository's exclude file. Without a
// repository there are none. All worktrees share that file, so no line is removed while another worktree has such a
// file.
func excludeEdits(top string, r Request, edits []edit) (excludes []edit) {
	c, _ := git.At(top)
	if !c.HasRepository() {
		return nil
	}
	list, _ := gitIn(top, "worktree", "list", "--porcelain").Output()
	for _, e := range edits {
		real, err := durable.RealPath(e.path)
		rel, _ := filepath.Rel(top, real) // real is below top: see checkPlace
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(list)) {
			worktree, isWorktree := strings.CutPrefix(strings.TrimSpace(line), "worktree ")
			other := filepath.Join(worktree, rel)
			if _, err := os.Lstat(other); r.isRemoval && isWorktree && err == nil && other != real {
				return nil
			}
		}
		name := "/" + filepath.ToSlash(rel)
		lines := mark(r.Tool, e.isServer) + "\n" + name + "\n"
		excludes = append(excludes, edit{filepath.Join(c.Common, "info", "exclude"), e.isServer, func(f *file, isRemoval bool) error {
			if text := string(f.after); isRemoval {
				f.setText(strings.ReplaceAll(text, lines, ""), "")
			} else if !strings.Contains(text, lines) {
				f.setText(endLine(text)+lines, "git ignores "+name)
			}
			return nil
		}})
	}
	return excludes
}
