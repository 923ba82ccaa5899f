package teams

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
)

// worktree is a directory with a .git, and what that says. git itself is never
// run: it would read the configuration of a repository that nobody trusts yet.
// The files are described in gitrepository-layout(5).
type worktree struct {
	top    string // the directory with the .git
	common string // the repository's own directory, that all its worktrees share; "" if .git leads to none
	main   string // the top of the main worktree; "" if there is none, or none is known
}

// worktreeAt reads dir/.git. A .git that is malformed or leads nowhere still
// makes dir a top. dir is physical, and so are the paths that come back.
func worktreeAt(dir string) (wt worktree, ok bool) {
	gitDir, ok := gitDirAt(dir)
	if !ok {
		return worktree{}, false
	}
	wt.top = dir
	if gitDir == "" {
		return wt, true
	}
	data, err := readSmall(filepath.Join(gitDir, "commondir"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The repository's only or main worktree, or a submodule.
		wt.common, wt.main = gitDir, dir
		return wt, true
	case err != nil:
		return wt, true
	}
	path, ok := parseCommonDir(data)
	if !ok {
		return wt, true
	}
	wt.common = resolveDir(gitDir, path)
	if wt.common == "" {
		return wt, true
	}
	// The main worktree is where a .git is, or leads to, the common directory.
	// A bare repository beside such a file counts: people keep their linked
	// worktrees around it, and no other place is known to all of them.
	parent := filepath.Dir(wt.common)
	if back, _ := gitDirAt(parent); back == wt.common {
		wt.main = parent
	}
	return wt, true
}

// gitDirAt gives the directory that dir/.git is or names, "" if it is of no
// use. ok: there is a .git, directory, file or a link to one.
func gitDirAt(dir string) (gitDir string, ok bool) {
	path := filepath.Join(dir, ".git")
	fi, err := os.Lstat(path)
	if err != nil {
		return "", false
	}
	switch fi.Mode().Type() {
	case fs.ModeDir:
		return path, true
	case fs.ModeSymlink:
		return resolveDir(dir, ".git"), true
	case 0:
		data, err := readSmall(path)
		if err != nil {
			return "", true
		}
		if path, ok = parseGitFile(data); !ok {
			return "", true
		}
		return resolveDir(dir, path), true
	}
	return "", false
}

// parseGitFile reads the content of a .git file, "gitdir: PATH", as git does:
// one space, and line ends only at the end.
func parseGitFile(data []byte) (path string, ok bool) {
	path, ok = strings.CutPrefix(string(data), "gitdir: ")
	if !ok {
		return "", false
	}
	return parseCommonDir([]byte(path))
}

// parseCommonDir reads the content of a commondir file: a path alone.
func parseCommonDir(data []byte) (path string, ok bool) {
	path = strings.TrimRight(string(data), "\r\n")
	return path, path != "" && !strings.ContainsRune(path, 0)
}

// resolveDir gives the directory that a path in a git file means, seen from
// base, and "" if there is none. Links are resolved before ".." is, as the
// kernel does; a cycle of them ends in "".
func resolveDir(base, path string) string {
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = base + string(filepath.Separator) + path
	}
	// Looking at \\host\share would send this user's credentials to host.
	if vol := filepath.VolumeName(path); strings.HasPrefix(vol, `\\`) && vol != filepath.VolumeName(base) {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	if fi, err := os.Lstat(real); err != nil || !fi.IsDir() {
		return ""
	}
	return real
}

// newRootAt says where a root that is not there yet belongs.
func newRootAt(wd string) (dir, why string) {
	for at := wd; at != ""; at = above(at) {
		wt, ok := worktreeAt(at)
		if !ok {
			continue
		}
		if wt.main == "" {
			return filepath.Join(wt.top, rootName), "at the top of this worktree: no main worktree is to be found"
		}
		return filepath.Join(wt.main, rootName), "at the top of the main worktree"
	}
	return filepath.Join(wd, rootName), "in this directory"
}

// maxSmall is the most that is read of a file that somebody else may have made.
const maxSmall = 4 << 10

var (
	errNotRegular = durable.ErrNotRegular
	errTooLarge   = durable.ErrTooLarge
)

// readSmall reads a regular file whole. A link, a FIFO or a device is not
// opened (that could wait for ever, or rewind a tape), a large file not read.
func readSmall(path string) ([]byte, error) {
	d, err := durable.Open(filepath.Dir(path), nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadFile(filepath.Base(path), maxSmall)
}
