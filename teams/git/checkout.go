// Package git knows as much about git repositories as a team needs: which worktree a directory lies in, the
// repository's own exclude file, and members' worktrees.
//
// Finding out where a directory belongs reads git's files, described in gitrepository-layout(5), and never runs git:
// git would obey the configuration of a repository that nobody trusts yet. Worktrees are made by git itself, and git
// alone decides what is in its way.
package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Checkout is a directory with a .git, and what that says. All paths are absolute and without symbolic links.
type Checkout struct {
	Top    string // the directory with the .git
	GitDir string // where this worktree's index is; "" if .git leads to none
	Common string // the repository's own directory, which its worktrees share; "" likewise
	Main   string // the top of the main worktree; "" if there is none, or none is known
}

// At reads dir/.git; ok is false when there is none. A .git that is malformed or
// leads nowhere still makes dir a top. dir is absolute and without links.
func At(dir string) (c Checkout, ok bool) {
	c.GitDir, ok = gitDirAt(dir)
	if ok {
		c.Top = dir
	}
	if c.GitDir == "" {
		return c, ok
	}
	path, err := readLine(filepath.Join(c.GitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) { // the only or main worktree, or a submodule
		c.Common, c.Main = c.GitDir, dir
	}
	if err != nil {
		return c, true
	}
	c.Common = resolve(c.GitDir, path)
	// The main worktree is where a .git is, or leads to, the common directory. A bare repository beside such a .git
	// file counts as well: people keep their linked worktrees around it.
	parent := filepath.Dir(c.Common)
	if back, _ := gitDirAt(parent); back != "" && back == c.Common {
		c.Main = parent
	}
	return c, true
}

// Nearest returns the checkout that a directory lies in; the innermost, since a repository can lie inside another one.
func Nearest(dir string) (c Checkout, ok bool) {
	for {
		up := filepath.Dir(dir)
		if c, ok := At(dir); ok || up == dir {
			return c, ok
		}
		dir = up
	}
}

// HasRepository reports whether .git leads to what git takes for a repository.
// Nothing is written to wherever a stranger's .git file points.
func (c Checkout) HasRepository() bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(c.Common, name)); c.Common == "" || err != nil {
			return false
		}
	}
	return true
}

// gitDirAt returns the directory that dir/.git is or names, "" if it is of no use; ok is false when there is no .git.
func gitDirAt(dir string) (gitDir string, ok bool) {
	path := filepath.Join(dir, ".git")
	info, err := os.Lstat(path)
	if err != nil {
		return "", false
	}
	if !info.Mode().IsRegular() {
		return resolve(dir, ".git"), info.IsDir() || info.Mode()&fs.ModeSymlink != 0
	}
	line, _ := readLine(path)
	named, _ := strings.CutPrefix(line, "gitdir: ")
	if named == "" || named == line {
		return "", true
	}
	return resolve(dir, named), true
}

// resolve returns the directory that a path in one of git's files means, seen from base, and "" if there is none.
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

// readLine reads a regular file of one line, of up to 4 KiB. A link, a FIFO or a
// device is not opened: that could wait for ever.
func readLine(path string) (string, error) {
	info, err := os.Lstat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > 4<<10) {
		err = errors.New("not one of git's files")
	}
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	line := strings.TrimRight(string(data), "\r\n")
	if err == nil && line == "" {
		err = errors.New("empty")
	}
	return line, err
}
