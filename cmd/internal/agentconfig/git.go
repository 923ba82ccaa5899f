package agentconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// checkUntracked returns an error if a repository tracks a file, or the link that leads to it.
func checkUntracked(path, real string) error {
	dir, _ := durable.RealPath(filepath.Dir(path)) // read has resolved path already
	for _, at := range []string{real, filepath.Join(dir, filepath.Base(path))} {
		top, isTracked, err := git.IsTracked(context.Background(), at)
		if err != nil {
			return fmt.Errorf("find out whether %s is tracked: %w", path, err)
		}
		if isTracked {
			return fmt.Errorf("%s %w in %s: atm left it alone", at, ErrTracked, top)
		}
	}
	return nil
}

// excludeEdits hides the files of the edits from git: each gets a line in the repository's exclude file. Without a
// repository there are none. All worktrees share that file, so no line is removed while another worktree has such a
// file.
func excludeEdits(top string, r Request, edits []edit) (excludes []edit) {
	c, _ := git.At(top)
	if c.Common == "" {
		return nil
	}
	tops := append(c.Linked(), c.Main)
	for _, e := range edits {
		real, err := durable.RealPath(e.path)
		rel, _ := filepath.Rel(top, real) // real is below top: see checkPlace
		if err != nil {
			continue
		}
		isElsewhere := func(other string) bool {
			file := filepath.Join(other, rel)
			_, err := os.Lstat(file)
			return other != "" && file != real && err == nil
		}
		if r.isRemoval && slices.ContainsFunc(tops, isElsewhere) {
			return nil
		}
		name := "/" + filepath.ToSlash(rel)
		lines := mark(r.Tool, e.isServer) + "\n" + name + "\n"
		excludes = append(excludes, edit{path: filepath.Join(c.Common, "info", "exclude"), isServer: e.isServer, apply: func(f *file, isRemoval bool) error {
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
