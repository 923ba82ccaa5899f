package teams

import (
	"path/filepath"
	"strings"
)

// Checkout is a git worktree, as far as somebody needs it who writes a file
// into it that git is not to see.
type Checkout struct {
	Top    string // the directory with the .git
	GitDir string // where the worktree's own index is; "" if .git leads to none
	Common string // the repository's own directory, that all its worktrees share; "" likewise
	Main   string // the top of the main worktree; "" if there is none, or none is known
}

// CheckoutsAt are the worktrees that a directory lies in, the nearest first.
// More than one is no accident: a repository may lie within another that
// tracked its files before it was one. dir is physical: absolute, without
// links.
func CheckoutsAt(dir string) []Checkout {
	var out []Checkout
	for at := dir; at != ""; at = above(at) {
		wt, ok := worktreeAt(at)
		if !ok {
			continue
		}
		gitDir, _ := gitDirAt(at)
		out = append(out, Checkout{Top: wt.top, GitDir: gitDir, Common: wt.common, Main: wt.main})
	}
	return out
}

// Linked reports whether this is another worktree than the main one.
func (c Checkout) Linked() bool { return c.Main != "" && c.Main != c.Top }

// ExcludeFile gives the exclude file of the worktree's repository, and the
// line in it that matches one file, path being within the worktree. Both are
// "" where there is no repository to exclude it from.
func (c Checkout) ExcludeFile(path string) (file, line string) {
	rel, err := filepath.Rel(c.Top, path)
	if err != nil || !filepath.IsLocal(rel) || c.Common != filepath.Join(c.Top, ".git") && !isRepository(c.Common) {
		return "", ""
	}
	return filepath.Join(c.Common, "info", "exclude"), strings.TrimSuffix(excludeLine(filepath.ToSlash(rel)), "/")
}
