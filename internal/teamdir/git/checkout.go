// Package git finds the git worktree that a directory belongs to, adds lines to a repository's exclude file, makes
// worktrees for members, and says what git tracks.
//
// Finding a worktree and adding lines reads and writes git's own files, described in gitrepository-layout(5): git would
// obey the configuration of a repository that nobody trusts yet. AddWorktree and TrackedAt run git, without its hooks:
// call them for a repository that this user works in.
package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
)

// Checkout describes a directory that has a .git. All paths are absolute and without symbolic links.
type Checkout struct {
	Top    string // the directory that has the .git
	gitDir string // the directory of this worktree's index; "" if .git is malformed or points nowhere
	Common string // the repository's directory, which all its worktrees share; "" likewise
	Main   string // the top of the main worktree; "" if there is none or it is unknown
}

// At reads dir/.git; ok is false when there is none. A malformed .git still makes dir a top. dir must be absolute and
// without symbolic links.
func At(dir string) (c Checkout, ok bool) {
	c.gitDir, ok = gitDirAt(dir)
	if ok {
		c.Top = dir
	}
	if c.gitDir == "" {
		return c, ok
	}
	path, err := readLine(filepath.Join(c.gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) { // the only or main worktree, or a submodule
		c.Common, c.Main = c.gitDir, dir
	}
	if err != nil || !c.isLinkedBack(dir) {
		return c, true
	}
	c.Common = resolve(c.gitDir, path)
	// The main worktree is the parent of the common directory if its .git is, or points to, that directory. The latter
	// is the layout of people who keep linked worktrees around a bare repository.
	parent := filepath.Dir(c.Common)
	if gitDir, _ := gitDirAt(parent); gitDir != "" && gitDir == c.Common {
		c.Main = parent
	}
	return c, true
}

// isLinkedBack reports whether the directory of a linked worktree names dir/.git in turn. A .git file that came with an
// archive may name somebody's worktree.
func (c Checkout) isLinkedBack(dir string) bool {
	back, err := os.Lstat(linkedFrom(c.gitDir))
	from, gone := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil && gone == nil && os.SameFile(back, from)
}

// linkedFrom returns the path of the .git file that a linked worktree's directory in the repository names.
func linkedFrom(gitDir string) string {
	path, _ := readLine(filepath.Join(gitDir, "gitdir"))
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		path = filepath.Join(gitDir, path)
	}
	return path
}

// Linked lists the tops of the repository's linked worktrees.
func (c Checkout) Linked() (tops []string) {
	dirs, _ := os.ReadDir(filepath.Join(c.Common, "worktrees"))
	for _, d := range dirs {
		top, err := filepath.EvalSymlinks(filepath.Dir(linkedFrom(filepath.Join(c.Common, "worktrees", d.Name()))))
		if other, ok := At(top); err == nil && ok && other.Common == c.Common {
			tops = append(tops, top)
		}
	}
	return tops
}

// Nearest returns the innermost checkout that contains dir.
func Nearest(dir string) (c Checkout, ok bool) {
	for {
		up := filepath.Dir(dir)
		if c, ok := At(dir); ok || up == dir {
			return c, ok
		}
		dir = up
	}
}

// HasRepository reports whether .git points to what git accepts as a repository. Callers check it before they write
// there: a cloned .git file can point anywhere.
func (c Checkout) HasRepository() bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(c.Common, name)); c.Common == "" || err != nil {
			return false
		}
	}
	return true
}

// gitDirAt returns the directory that dir/.git is or names, "" if there is no such directory; ok reports whether there
// is a .git.
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

// resolve returns the directory that a path in one of git's files names, relative to base; "" if there is none.
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

// readLine reads a regular file of one line of up to 4 KiB, and no link.
func readLine(path string) (string, error) {
	info, err := os.Lstat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > 4<<10) {
		err = errors.New("not one of git's files")
	}
	if err != nil {
		return "", err
	}
	data, err := durable.ReadRegular(path, 4<<10)
	line := strings.TrimRight(string(data), "\r\n")
	if err == nil && line == "" {
		err = errors.New("empty")
	}
	return line, err
}
