package git

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Tracked is what git's indexes say about a directory.
type Tracked struct {
	Digest string   // of the paths, modes and contents; "" if git tracks nothing there
	Count  int      // of the files
	Files  []string // relative to the directory
}

var (
	// ErrBusy says that a git process may be writing files just now.
	ErrBusy = errors.New("git is at work")

	// ErrNoGit says that the program git cannot be run.
	ErrNoGit = errors.New("git is not installed or not on PATH")
)

// maxAnswer is how long git may take to list an index.
const maxAnswer = 5 * time.Second

// TrackedAt asks git what it tracks at and below a directory: in every repository that contains it, and in those that
// begin in it, at most two levels down. Where there is no repository, it does not run git.
//
// A file that is there because git wrote it is in the answer, or the error is ErrBusy. For git takes its lock before it
// writes files, and releases it when the index names them. Whoever saw a file before the call compares the State before
// that with the one after the call: git may have removed the file in between.
//
// git runs with the caller's environment environ, and reads nothing but the index.
func TrackedAt(ctx context.Context, environ []string, dir string) (t Tracked, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxAnswer)
	defer cancel()
	environ = append(CleanEnviron(environ), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
		"GIT_GLOB_PATHSPECS=0", "GIT_NOGLOB_PATHSPECS=0", "GIT_ICASE_PATHSPECS=0")
	sum := sha256.New()
	for _, x := range indexesAt(dir) {
		list, err := x.entries(ctx, environ)
		if err != nil {
			return Tracked{}, fmt.Errorf("what git tracks in %s is not known: %w", x.top, err)
		}
		if list == "" {
			continue
		}
		rel, _ := filepath.Rel(dir, x.top)
		fmt.Fprintf(sum, "%s\x00%d\x00", filepath.ToSlash(rel), len(list))
		io.WriteString(sum, list)
		t.Digest = fmt.Sprintf("%x", sum.Sum(nil))
		for entry := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
			_, path, _ := strings.Cut(entry, "\t")
			file, _ := filepath.Rel(dir, filepath.Join(x.top, filepath.FromSlash(path)))
			t.Count, t.Files = t.Count+1, append(t.Files, file)
		}
	}
	return t, nil
}

// State tells the indexes that TrackedAt asks from those of another moment.
type State []fs.FileInfo

// StateAt returns the state for a directory.
func StateAt(dir string) (s State) {
	for _, x := range indexesAt(dir) {
		for _, name := range []string{"index", "index.lock"} {
			info, _ := os.Lstat(filepath.Join(x.gitDir, name)) // nil: there is none
			s = append(s, info)
		}
	}
	return s
}

// Equal reports whether no git process has changed an index in between, or may be writing files.
func (s State) Equal(o State) bool {
	return slices.EqualFunc(s, o, func(a, b fs.FileInfo) bool {
		if a == nil || b == nil {
			return a == nil && b == nil
		}
		return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
	})
}

// index is the index of a repository, in which files of a directory may be.
type index struct {
	top    string // the directory that has the .git
	gitDir string
	path   string // of the directory, relative to top; "": everything counts
}

// indexesAt returns the indexes of the repositories that contain a directory, the innermost first, and those that begin in it. A
// .git that leads to no repository is none to git either.
func indexesAt(dir string) (found []index) {
	add := func(top, path string) {
		gitDir, _ := gitDirAt(top)
		if _, err := os.Lstat(filepath.Join(gitDir, "HEAD")); gitDir != "" && err == nil {
			found = append(found, index{top, gitDir, filepath.ToSlash(path)})
		}
	}
	for up, from := filepath.Dir(dir), dir; up != from; up, from = filepath.Dir(up), up {
		if path, err := filepath.Rel(up, dir); err == nil && !strings.HasPrefix(path, ".git"+string(filepath.Separator)) {
			add(up, path)
		}
	}
	for _, one := range append([]string{dir}, directoriesIn(dir)...) {
		add(one, "")
		if one != dir {
			for _, two := range directoriesIn(one) {
				add(two, "")
			}
		}
	}
	return found
}

func directoriesIn(dir string) (dirs []string) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() { // no link
		return nil
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	return dirs
}

// entries returns the entries of the index, as git ls-files -s -z lists them.
func (x index) entries(ctx context.Context, environ []string) (list string, err error) {
	lock := filepath.Join(x.gitDir, "index.lock")
	info, free := os.Lstat(lock)
	// git writes files first and its new index, at one go, at the end.
	if free == nil && (info.Size() == 0 || time.Since(info.ModTime()).Abs() < time.Second) {
		return "", fmt.Errorf("%w: %s", ErrBusy, lock)
	}
	next := ""
	if free == nil { // the new index waits, perhaps for somebody to write a commit's message
		if next, err = x.list(ctx, append(slices.Clip(environ), "GIT_INDEX_FILE="+lock)); err != nil {
			return "", fmt.Errorf("%w: %s", ErrBusy, lock)
		}
	}
	if _, err := os.Lstat(filepath.Join(x.gitDir, "index")); !errors.Is(err, fs.ErrNotExist) {
		if list, err = x.list(ctx, environ); err != nil {
			return "", err
		}
	}
	if free == nil && next != list {
		return "", fmt.Errorf("%w: %s", ErrBusy, lock)
	}
	return list, nil
}

func (x index) list(ctx context.Context, environ []string) (string, error) {
	args := []string{"ls-files", "-s", "-z"}
	if x.path != "" {
		magic := "top,literal"
		if foldsCase(x.top, x.path) {
			magic += ",icase"
		}
		args = append(args, "--", ":("+magic+")"+x.path)
	}
	return run(ctx, environ, x.top, args...)
}

// foldsCase reports whether the file system takes a path for the same in upper and lower case. Then git may track it as
// .ATM, too.
func foldsCase(top, path string) bool {
	at := top
	for name := range strings.SplitSeq(path, "/") {
		other := strings.ToUpper(name)
		if other == name {
			other = strings.ToLower(name)
		}
		a, errA := os.Lstat(filepath.Join(at, name))
		b, errB := os.Lstat(filepath.Join(at, other))
		if other != name && errA == nil && errB == nil && os.SameFile(a, b) {
			return true
		}
		at = filepath.Join(at, name)
	}
	return false
}
