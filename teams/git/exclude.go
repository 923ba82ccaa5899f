package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxExclude bounds how much is read of an exclude file.
const maxExclude = 1 << 20

// Exclude puts a directory into the exclude file of the repository that it lies
// in, <commondir>/info/exclude, which belongs to the user and is not tracked,
// unless it is there. Outside of any repository there is nothing to do, and file
// is "".
func Exclude(dir string) (changed bool, file string, err error) {
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return false, "", err
	}
	all := Above(dir)
	if len(all) == 0 || all[0].Top == dir { // a repository of its own
		return false, "", nil
	}
	file, line := all[0].ExcludeFile(dir)
	if file == "" {
		return false, "", nil
	}
	// The slash keeps git from dropping a blank at the end.
	line += "/"
	changed, err = addLine(all[0].Common, line)
	if err != nil {
		return false, file, fmt.Errorf("exclude %q from git: %w; add the line %q to %q yourself", dir, err, line, file)
	}
	return changed, file, nil
}

// ExcludeFile returns the exclude file of the checkout's repository, and the
// line for it that matches path, a file or directory in the checkout, and
// nothing else (see gitignore(5)). Both are "" where there is no repository that
// it could be excluded from.
func (c Checkout) ExcludeFile(path string) (file, line string) {
	rel, err := filepath.Rel(c.Top, path)
	if err != nil || !filepath.IsLocal(rel) || strings.HasPrefix(filepath.ToSlash(rel), ".git/") {
		return "", ""
	}
	if c.Common != filepath.Join(c.Top, ".git") && !c.HasRepository() {
		return "", ""
	}
	// A line feed cannot be written there: it stands as any character.
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, "\n", "?")
	return filepath.Join(c.Common, "info", "exclude"), "/" + escape.Replace(filepath.ToSlash(rel))
}

// addLine appends a line to info/exclude in a repository's directory unless it
// is there. Links are left alone.
func addLine(common, line string) (changed bool, err error) {
	dir, err := os.OpenRoot(common)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	// The modes are git's: the file is the repository's, not ours.
	if err := dir.Mkdir("info", 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	if info, err := dir.Lstat("info"); err != nil || !info.IsDir() {
		return false, errors.New("info is a link or no directory, and was left alone")
	}
	const name = "info/exclude"
	var data []byte
	if info, err := dir.Lstat(name); err == nil {
		if !info.Mode().IsRegular() || info.Size() > maxExclude {
			return false, errors.New("it is a link, no regular file or too large, and was left alone")
		}
		if data, err = dir.ReadFile(name); err != nil {
			return false, err
		}
	}
	if hasLine(data, line) {
		return false, nil
	}
	text := line + "\n"
	if len(data) > 0 && data[len(data)-1] != '\n' {
		text = "\n" + text
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return false, err
	}
	_, err = f.WriteString(text) // one write: somebody else may append too
	return err == nil, errors.Join(err, f.Close())
}

// hasLine reports whether a line is there, with or without a slash at its end.
func hasLine(data []byte, line string) bool {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return slices.ContainsFunc(strings.Split(string(data), "\n"), func(l string) bool {
		return strings.TrimSuffix(strings.TrimSuffix(l, "\r"), "/") == strings.TrimSuffix(line, "/")
	})
}
