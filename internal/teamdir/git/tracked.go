package git

import (
	"bytes"
	"cmp"
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

	"github.com/agentteammail/atm/internal/durable"
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

// BusyError is ErrBusy with git's lock, which a git that was killed has left.
type BusyError struct{ Lock string }

func (e *BusyError) Error() string        { return ErrBusy.Error() + ": " + e.Lock }
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// maxAnswer is how long git may take to list an index.
const maxAnswer = 5 * time.Second

// TrackedAt asks git what it tracks at and below a directory: in every repository that contains it, and in those that
// begin in it, at most two levels down. Where there is no repository, it does not run git.
//
// A file that is there because git wrote it is in the answer, or the error is ErrBusy. For git takes its lock before it
// writes files, and releases it when the index names them. Whoever saw a file before the call compares the State before
// that with the one after the call: git may have removed the file in between.
//
// git runs with the caller's environment environ.
func TrackedAt(ctx context.Context, environ []string, dir string) (t Tracked, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxAnswer)
	defer cancel()
	sum := sha256.New()
	for _, x := range indexesAt(dir) {
		list, err := x.entries(ctx, environ)
		if err != nil {
			return Tracked{}, fmt.Errorf("what git tracks in %s is not known: %w", x.Top, err)
		}
		if list == "" {
			continue
		}
		rel, _ := filepath.Rel(dir, x.Top)
		fmt.Fprintf(sum, "%s\x00%d\x00", filepath.ToSlash(rel), len(list))
		io.WriteString(sum, list)
		t.Digest = fmt.Sprintf("%x", sum.Sum(nil))
		for entry := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
			_, path, _ := strings.Cut(entry, "\t")
			file, _ := filepath.Rel(dir, filepath.Join(x.Top, filepath.FromSlash(path)))
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
	Checkout
	path string // of the directory, relative to Top; "": everything counts
}

// indexesAt returns the indexes of the repositories that contain a directory, the innermost first, and those that begin
// in it.
func indexesAt(dir string) (found []index) {
	add := func(top, path string) {
		if c, _ := At(top); c.gitDir != "" {
			found = append(found, index{c, filepath.ToSlash(path)})
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
	if err := x.checkPlace(ctx, environ); err != nil {
		return "", err
	}
	lock := filepath.Join(x.gitDir, "index.lock")
	info, err := os.Lstat(lock)
	isLocked := err == nil
	// git writes files first and its new index, at one go, at the end.
	if isLocked && (info.Size() == 0 || time.Since(info.ModTime()).Abs() < time.Second) {
		return "", &BusyError{lock}
	}
	next := ""
	if isLocked { // the new index waits, perhaps for somebody to write a commit's message
		if next, err = x.list(ctx, environ, "GIT_INDEX_FILE="+lock); err != nil {
			return "", &BusyError{lock}
		}
	}
	if _, err := os.Lstat(filepath.Join(x.gitDir, "index")); !errors.Is(err, fs.ErrNotExist) {
		if list, err = x.list(ctx, environ); err != nil {
			return "", err
		}
	}
	if isLocked && next != list {
		return "", &BusyError{lock}
	}
	return list, nil
}

// checkPlace returns an error if core.worktree has git write files somewhere else than beside .git. git is asked only if a
// file that can say so has that word: nearly none does.
func (x index) checkPlace(ctx context.Context, environ []string) error {
	common, _ := commonOf(x.gitDir)
	says := func(file string) bool {
		data, err := durable.ReadRegular(file, maxConfig)
		return bytes.Contains(bytes.ToLower(data), []byte("worktree")) || err != nil && !errors.Is(err, fs.ErrNotExist)
	}
	if !says(filepath.Join(common, "config")) && !says(filepath.Join(x.gitDir, "config.worktree")) {
		return nil
	}
	answer, err := run(ctx, environ, x.Top, "rev-parse", "--is-bare-repository", "--show-toplevel")
	if strings.HasPrefix(answer, "true\n") { // a bare repository has no files, and there is an error for them
		return nil
	}
	if err != nil {
		return err
	}
	top := strings.TrimSuffix(strings.TrimPrefix(answer, "false\n"), "\n")
	there, thereErr := os.Lstat(filepath.FromSlash(top))
	here, err := os.Lstat(x.Top)
	if cmp.Or(thereErr, err) != nil || !os.SameFile(here, there) {
		return fmt.Errorf("its git works in %s: git config --unset core.worktree", top)
	}
	return nil
}

const maxConfig = 1 << 20 // bytes of a repository's configuration that is not taken for one with core.worktree

func (x index) list(ctx context.Context, environ []string, more ...string) (string, error) {
	args := []string{"ls-files", "-s", "-z"}
	if x.path != "" {
		path := literally(x.path)
		if foldsCase(x.Top, x.path) {
			path = ":(icase,literal)" + x.path
		}
		args = append(args, "--", path)
	}
	cmd := command(ctx, environ, x.Top, args...)
	cmd.Env = append(cmd.Env, more...)
	return output(ctx, cmd, args[0])
}

// literally makes git take a path, relative to the top, as it is.
func literally(path string) string { return ":(literal)" + path }

// IsTracked reports whether git tracks a file, in the innermost repository around it, whose top it returns. path is
// absolute, and its directory without symbolic links.
func IsTracked(ctx context.Context, path string) (top string, isTracked bool, err error) {
	c, _ := Nearest(filepath.Dir(path))
	if c.gitDir == "" {
		return "", false, nil
	}
	rel, err := filepath.Rel(c.Top, path)
	if err != nil {
		return "", false, err
	}
	list, err := index{c, filepath.ToSlash(rel)}.list(ctx, os.Environ())
	return c.Top, list != "", err
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
