// Package git knows as much about git repositories as a team needs: which
// worktrees a directory lies in, the repository's own exclude file, and members'
// worktrees.
//
// Finding out where a directory belongs reads git's files, described in
// gitrepository-layout(5), and never runs git: git would obey the configuration
// of a repository that nobody trusts yet. Worktrees are made by git itself, and
// git alone decides what is in its way.
package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
)

// Checkout is a directory with a .git, and what that says. All paths are
// absolute and without symbolic links.
type Checkout struct {
	Top    string // the directory with the .git
	GitDir string // where this worktree's index is; "" if .git leads to none
	Common string // the repository's own directory, which its worktrees share; "" likewise
	Main   string // the top of the main worktree; "" if there is none, or none is known
}

// At reads dir/.git; ok is false when there is none. A .git that is malformed or
// leads nowhere still makes dir a top. dir is absolute and without links.
func At(dir string) (c Checkout, ok bool) {
	gitDir, ok := gitDirAt(dir)
	if !ok {
		return Checkout{}, false
	}
	c = Checkout{Top: dir, GitDir: gitDir}
	if gitDir == "" {
		return c, true
	}
	data, err := readSmall(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		// The repository's only or main worktree, or a submodule.
		c.Common, c.Main = gitDir, dir
		return c, true
	}
	path, ok := parsePath(string(data))
	if err != nil || !ok {
		return c, true
	}
	c.Common = resolve(gitDir, path)
	if c.Common == "" {
		return c, true
	}
	// The main worktree is where a .git is, or leads to, the common directory. A
	// bare repository beside such a .git file counts as well: people keep their
	// linked worktrees around it.
	parent := filepath.Dir(c.Common)
	if back, _ := gitDirAt(parent); back == c.Common {
		c.Main = parent
	}
	return c, true
}

// Above returns the checkouts that a directory lies in, the nearest first. There
// may be several: a repository can lie inside another one.
func Above(dir string) []Checkout {
	var out []Checkout
	for {
		if c, ok := At(dir); ok {
			out = append(out, c)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return out
		}
		dir = up
	}
}

// IsLinked reports whether this is a worktree other than the main one.
func (c Checkout) IsLinked() bool { return c.Main != "" && c.Main != c.Top }

// HasRepository reports whether .git leads to what git takes for a repository.
// Nothing is written to wherever a stranger's .git file points.
func (c Checkout) HasRepository() bool {
	if c.Common == "" {
		return false
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(c.Common, name)); err != nil {
			return false
		}
	}
	return true
}

// gitDirAt returns the directory that dir/.git is or names, "" if it is of no
// use; ok is false when there is no .git.
func gitDirAt(dir string) (gitDir string, ok bool) {
	path := filepath.Join(dir, ".git")
	info, err := os.Lstat(path)
	if err != nil {
		return "", false
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return path, true
	case fs.ModeSymlink:
		return resolve(dir, ".git"), true
	case 0:
		data, err := readSmall(path)
		named, isGitFile := strings.CutPrefix(string(data), "gitdir: ")
		named, valid := parsePath(named)
		if err != nil || !isGitFile || !valid {
			return "", true
		}
		return resolve(dir, named), true
	}
	return "", false
}

// parsePath reads a path as git does: without the line ends behind it.
func parsePath(s string) (path string, ok bool) {
	path = strings.TrimRight(s, "\r\n")
	return path, path != "" && !strings.ContainsRune(path, 0)
}

// resolve returns the directory that a path in one of git's files means, seen
// from base, and "" if there is none.
func resolve(base, path string) string {
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = base + string(filepath.Separator) + path // not cleaned: links are resolved before ".."
	}
	// Looking at \\host\share would send this user's credentials to host.
	if vol := filepath.VolumeName(path); strings.HasPrefix(vol, `\\`) && vol != filepath.VolumeName(base) {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	if info, err := os.Lstat(real); err != nil || !info.IsDir() {
		return ""
	}
	return real
}

// readSmall reads a regular file of up to 4 KiB. A link, a FIFO or a device is
// not opened: that could wait for ever.
func readSmall(path string) ([]byte, error) {
	d, err := durable.Open(filepath.Dir(path), nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadFile(filepath.Base(path), 4<<10)
}
