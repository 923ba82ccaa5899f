package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// IncludeFile is the file at the top of a repository with patterns, as of a .gitignore, of the files that a new worktree gets
// although git ignores them. Claude Code and Conductor read it, too.
const IncludeFile = ".worktreeinclude"

// Include copies what IncludeFile names from c's worktree to another one of the repository, and returns how many files. What is
// there already stays. Only regular files are copied, and none in the directory leaveOut.
func Include(ctx context.Context, environ []string, c Checkout, to, leaveOut string) (n int, err error) {
	patterns := filepath.Join(c.Top, IncludeFile)
	if info, err := os.Lstat(patterns); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return 0, nil
	}
	list := func(exclude string) []string {
		text, listErr := run(ctx, environ, c.Top, "ls-files", "-z", "--others", "--ignored", exclude)
		err = errors.Join(err, listErr)
		return strings.Split(text, "\x00")
	}
	ignored, named := list("--exclude-standard"), list("--exclude-from="+patterns)
	if err != nil {
		return 0, err
	}
	from, err := os.OpenRoot(c.Top) // no link leads out of it
	if err != nil {
		return 0, err
	}
	defer from.Close()
	into, err := os.OpenRoot(to)
	if err != nil {
		return 0, err
	}
	defer into.Close()
	slices.Sort(ignored)
	for _, name := range named {
		_, isIgnored := slices.BinarySearch(ignored, name)
		isLeftOut := strings.HasPrefix(filepath.Join(c.Top, name)+"/", leaveOut+"/")
		if name == "" || !isIgnored || isLeftOut || strings.HasSuffix(name, "/") { // a repository of its own
			continue
		}
		isCopied, err := copyFile(from, into, name)
		if err != nil {
			return n, err
		} else if isCopied {
			n++
		}
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
	}
	return n, nil
}

// copyFile copies a file from one directory to another, whole or not at all, unless one of that name is there.
func copyFile(from, into *os.Root, name string) (isCopied bool, err error) {
	info, err := from.Lstat(name)
	if _, there := into.Lstat(name); err != nil || !info.Mode().IsRegular() || !errors.Is(there, fs.ErrNotExist) {
		return false, nil // it has gone, or is a link or there
	}
	in, err := from.Open(name)
	if err != nil {
		return false, err
	}
	defer in.Close()
	if err := into.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, err
	}
	unfinished := name + IncludeFile
	out, err := into.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return false, err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err == nil {
		err = into.Rename(unfinished, name)
	}
	if err != nil {
		into.Remove(unfinished)
	}
	return err == nil, err
}
