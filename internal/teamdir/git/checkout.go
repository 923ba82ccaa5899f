// Package git says which repository a directory belongs to, as git says it, adds lines to a repository's exclude file,
// makes worktrees for members, and says what git tracks.
//
// Which repository that is, and its exclude file, is read from git's own files, described in gitrepository-layout(5):
// every command asks, before anybody trusts what is there. All else runs git, in one way (see command).
package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
)

// Checkout describes a directory in which git finds a repository. All paths are absolute and without symbolic links.
type Checkout struct {
	Top    string // the directory that has the .git
	Common string // the repository's directory, which all its worktrees share; "": see Strange, or git cannot read .git
	Main   string // the top of the main worktree; "" if there is none or it is unknown

	// Strange says why the repository that git would use is not taken for the directory's: it does not know this
	// worktree. A .git that came with an archive may name somebody's repository.
	Strange error

	gitDir string // the directory of this worktree's index; "": git cannot read .git
}

// At returns the repository that git finds at dir itself, with what is in .git or what .git names. It is ok, without a
// Common, if there is a .git file that git cannot read: git looks no further then. dir must be absolute and without
// symbolic links.
func At(dir string) (c Checkout, ok bool) {
	gitDir, isFile := gitDirAt(dir)
	common, err := commonOf(gitDir)
	if gitDir == "" || err == nil && !isRepository(gitDir, common) {
		if isFile {
			c.Top = dir
		}
		return c, isFile
	}
	c = Checkout{Top: dir, gitDir: gitDir}
	switch {
	case err != nil:
		c.Strange = err
	case common == gitDir: // the only or main worktree, or a submodule
		c.Common, c.Main = common, dir
	case !isKnownTo(common, gitDir, dir):
		c.Strange = fmt.Errorf("the repository %s: it does not know its worktree %s; if that was moved, in there: git worktree repair", common, dir)
	default:
		c.Common = common
		// The main worktree is the parent of the common directory if its .git is, or points to, that directory. The latter
		// is the layout of people who keep linked worktrees around a bare repository.
		parent := filepath.Dir(common)
		if gitDir, _ := gitDirAt(parent); gitDir == common {
			c.Main = parent
		}
	}
	return c, true
}

// isKnownTo reports whether a repository has a linked worktree at dir: what git keeps of it lies in the repository, and
// names dir/.git in turn.
func isKnownTo(common, gitDir, dir string) bool {
	back := linkedFrom(gitDir)
	from, fromErr := os.Lstat(resolve("", filepath.Dir(back)))
	here, err := os.Lstat(dir)
	isThere := fromErr == nil && err == nil && os.SameFile(from, here) && filepath.Base(back) == ".git"
	return isThere && filepath.Dir(gitDir) == resolve(common, "worktrees")
}

// isRepository reports whether git takes a directory for a repository's or a linked worktree's.
func isRepository(gitDir, common string) bool {
	for _, path := range []string{filepath.Join(gitDir, "HEAD"), filepath.Join(common, "objects"), filepath.Join(common, "refs")} {
		if _, err := os.Lstat(path); err != nil {
			return false
		}
	}
	return true
}

// commonOf returns the directory of the repository that a .git directory belongs to: itself, or what its file commondir
// names.
func commonOf(gitDir string) (string, error) {
	if gitDir == "" {
		return "", nil
	}
	file := filepath.Join(gitDir, "commondir")
	path, err := readLine(file, maxLine)
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if common := resolve(gitDir, path); err == nil && common != "" {
		return common, nil
	}
	return "", fmt.Errorf("the repository that %s names: there is none", file)
}

// linkedFrom returns the path of the .git file that a linked worktree's directory in the repository names.
func linkedFrom(gitDir string) string {
	path, _ := readLine(filepath.Join(gitDir, "gitdir"), maxLine)
	return absolute(gitDir, path)
}

// Linked lists the tops of the repository's linked worktrees.
func (c Checkout) Linked() (tops []string) {
	if c.Common == "" {
		return nil
	}
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

// gitDirAt returns the directory that dir/.git is or names, "" if there is no such directory; isFile reports whether it
// is a file. git follows a link to either.
func gitDirAt(dir string) (gitDir string, isFile bool) {
	path := filepath.Join(dir, ".git")
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if !info.Mode().IsRegular() {
		return resolve(dir, ".git"), false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", true
	}
	line, _ := readLine(path, maxGitFile)
	named, isNamed := strings.CutPrefix(line, "gitdir: ")
	if named, _, _ = strings.Cut(named, "\x00"); !isNamed || named == "" {
		return "", true
	}
	return resolve(dir, named), true
}

const (
	maxGitFile = 1 << 20 // bytes of a .git file, as for git
	maxLine    = 4 << 10 // of its other files
)

// resolve returns the directory that a path in one of git's files names, relative to base; "" if there is none.
func resolve(base, path string) string {
	path = absolute(base, path)
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

// absolute returns a path in one of git's files. It is not cleaned: links are resolved before "..".
func absolute(base, path string) string {
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		path = base + string(filepath.Separator) + path
	}
	return path
}

// readLine reads a regular file of one line of up to max bytes, and no link.
func readLine(path string, max int64) (string, error) {
	info, err := os.Lstat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > max) {
		err = errors.New("not one of git's files")
	}
	if err != nil {
		return "", err
	}
	data, err := durable.ReadRegular(path, max)
	line := strings.TrimRight(string(data), "\r\n")
	if err == nil && line == "" {
		err = errors.New("empty")
	}
	return line, err
}
