package teams

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxExclude bounds what is read of an exclude file.
const maxExclude = 1 << 20

// Exclude puts the root into the exclude file of the repository that it lies
// in, <commondir>/info/exclude, which is the user's own and not tracked. It is
// done once; a root outside of any repository needs nothing, and file is "".
// Links on the way to the file are left alone, with an error.
func Exclude(root string) (changed bool, file string, err error) {
	changed, file, err = exclude(root)
	if err != nil {
		err = fmt.Errorf("exclude %s from git: %w", shown(root), err)
	}
	return changed, file, err
}

func exclude(root string) (changed bool, file string, err error) {
	root, err = filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return false, "", err
	}
	if _, ok := gitDirAt(root); ok {
		return false, "", nil // a repository of its own: what is tracked there is its owner's choice
	}
	for at := above(root); at != ""; at = above(at) {
		wt, ok := worktreeAt(at)
		if !ok {
			continue
		}
		rel, err := filepath.Rel(at, root)
		if err != nil {
			return false, "", err
		}
		rel = filepath.ToSlash(rel)
		// A .git that says nothing, or leads to what is no repository, is none:
		// nothing is written to wherever a stranger's .git file points.
		known := wt.common == filepath.Join(at, ".git") || isRepository(wt.common)
		if !known || strings.HasPrefix(rel, ".git/") {
			return false, "", nil
		}
		changed, err = addLine(wt.common, excludeLine(rel))
		return changed, filepath.Join(wt.common, "info", "exclude"), err
	}
	return false, "", nil
}

// isRepository looks for what git looks for.
func isRepository(dir string) bool {
	if dir == "" {
		return false
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// excludeLine is the pattern that matches one directory, rel to the top of its
// worktree, and nothing else: see gitignore(5). A line feed cannot be written
// there, so one stands as any character.
func excludeLine(rel string) string {
	escapes := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, "\n", "?")
	return "/" + escapes.Replace(rel) + "/"
}

// addLine appends line to info/exclude in the repository's own directory,
// unless it is there.
func addLine(common, line string) (changed bool, err error) {
	dir, err := os.OpenRoot(common)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	if err := dir.Mkdir("info", 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	if fi, err := dir.Lstat("info"); err != nil || !fi.IsDir() {
		return false, leftAlone(filepath.Join(common, "info"), line, err)
	}
	const name = "info/exclude"
	// The modes are git's: the file is the repository's, not ours.
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o666)
	var data []byte
	if errors.Is(err, fs.ErrExist) {
		f, data, err = openExclude(dir, name, line)
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if hasLine(data, line) {
		return false, nil
	}
	text := line + "\n"
	if len(data) > 0 && data[len(data)-1] != '\n' {
		text = "\n" + text
	}
	if _, err := f.WriteString(text); err != nil { // one write: another init may append too
		return false, err
	}
	return true, nil
}

// openExclude opens an exclude file that is there, for appending, and reads it.
func openExclude(dir *os.Root, name, line string) (*os.File, []byte, error) {
	path := filepath.Join(dir.Name(), filepath.FromSlash(name))
	before, err := dir.Lstat(name)
	if err != nil || !before.Mode().IsRegular() {
		return nil, nil, leftAlone(path, line, err)
	}
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_APPEND|openQuietly, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil && !os.SameFile(before, fi) {
		err = leftAlone(path, line, nil)
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(f, maxExclude+1))
	}
	if err == nil && len(data) > maxExclude {
		err = fmt.Errorf("%s is larger than 1 MiB; add the line %s yourself", shown(path), line)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, data, nil
}

// leftAlone is about a file that is not what it should be.
func leftAlone(path, line string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is a link or no regular file, and was left alone; add the line %s yourself", shown(path), shown(line))
}

// hasLine looks for a line that excludes the same directory: ours, or one
// without the slash at the end.
func hasLine(data []byte, line string) bool {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	for l := range bytes.Lines(data) {
		l = bytes.TrimRight(l, "\r\n")
		if s := string(l); s == line || s+"/" == line {
			return true
		}
	}
	return false
}
