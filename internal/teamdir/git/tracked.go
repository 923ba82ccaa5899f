package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
)

var (
	// ErrBusy says that a git process may be writing files just now. The error names its lock, which a git that was killed
	// has left.
	ErrBusy = errors.New("git is at work")

	// ErrNoGit says that the program git cannot be run.
	ErrNoGit = errors.New("git is not installed or not on PATH")
)

// maxAnswer is how long git may take to list an index.
const maxAnswer = 5 * time.Second

// TrackedAt lists the files that git tracks at and below a directory, relative to it: in every repository that contains
// it, and in those that begin in it, at most two levels down. Where there is no repository, it does not run git.
//
// A file that is there because git wrote it is in the answer, or the error is an ErrBusy: git takes its lock before it
// writes files, and releases it when the index names them.
//
// git runs with the caller's environment environ.
func TrackedAt(ctx context.Context, environ []string, dir string) (files []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxAnswer)
	defer cancel()
	for _, x := range indexesAt(dir) {
		paths, err := x.paths(ctx, environ)
		if err != nil {
			return nil, fmt.Errorf("what git tracks in %s is not known: %w", x.Top, err)
		}
		for _, path := range paths {
			file, _ := filepath.Rel(dir, filepath.Join(x.Top, filepath.FromSlash(path)))
			files = append(files, file)
		}
	}
	return files, nil
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

// paths lists what the index has, and what the next index will have that a git process is about to put in its place.
func (x index) paths(ctx context.Context, environ []string) (paths []string, err error) {
	if err := x.checkPlace(ctx, environ); err != nil {
		return nil, err
	}
	lock := filepath.Join(x.gitDir, "index.lock")
	info, err := os.Lstat(lock)
	isLocked := err == nil
	// git writes files first and its new index, at one go, at the end.
	if isLocked && (info.Size() == 0 || time.Since(info.ModTime()).Abs() < time.Second) {
		return nil, fmt.Errorf("%w: %s", ErrBusy, lock)
	}
	if isLocked { // the new index waits, perhaps for somebody to write a commit's message
		if paths, err = x.list(ctx, environ, "GIT_INDEX_FILE="+lock); err != nil {
			return nil, fmt.Errorf("%w: %s", ErrBusy, lock)
		}
	}
	if _, err := os.Lstat(filepath.Join(x.gitDir, "index")); errors.Is(err, fs.ErrNotExist) {
		return paths, nil
	}
	now, err := x.list(ctx, environ)
	return append(paths, now...), err
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

// list lists the paths that the index has, relative to Top.
func (x index) list(ctx context.Context, environ []string, more ...string) ([]string, error) {
	args := []string{"ls-files", "-z"}
	if x.path != "" {
		path := literally(x.path)
		if foldsCase(x.Top, x.path) {
			path = ":(icase,literal)" + x.path
		}
		args = append(args, "--", path)
	}
	cmd := command(ctx, environ, x.Top, args...)
	cmd.Env = append(cmd.Env, more...)
	out, err := output(ctx, cmd, args[0])
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), err
}

// literally makes git take a path, relative to the top, as it is.
func literally(path string) string { return ":(literal)" + path }

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
