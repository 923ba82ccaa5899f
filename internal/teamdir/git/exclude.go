package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
)

// Exclude adds a directory to the untracked exclude file of the repository that contains it, <commondir>/info/exclude.
// Outside a repository it does nothing.
func Exclude(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	c, ok := Nearest(dir)
	if !ok || c.Common == "" || c.Top == dir { // none, or a repository of its own
		return nil
	}
	rel, err := filepath.Rel(c.Top, dir)
	rel = filepath.ToSlash(rel)
	if err != nil || strings.HasPrefix(rel, ".git/") {
		return nil
	}
	// See gitignore(5). The slash at the end keeps git from trimming a trailing blank. A line feed cannot be written: "?"
	// matches it.
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, "\n", "?")
	line := "/" + escape.Replace(rel) + "/"
	if err := addLine(c.Common, line); err != nil {
		file := filepath.Join(c.Common, "info", "exclude")
		return fmt.Errorf("exclude %q from git: %w; add the line %q to %q yourself", dir, err, line, file)
	}
	return nil
}

// addLine appends a line to common/info/exclude unless it is there, and follows no link out of common. The file gets
// git's modes, since it belongs to the repository.
func addLine(common, line string) error {
	dir, err := os.OpenRoot(common)
	if err != nil {
		return err
	}
	defer dir.Close()
	dir.Mkdir("info", 0o777)
	const name = "info/exclude"
	if info, err := dir.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return errors.New("it is not a regular file and was left alone")
	}
	data, err := durable.ReadIn(dir, name, 16<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.Contains(strings.Split(string(data), "\n"), line) {
		return nil
	}
	text := line + "\n"
	if len(data) > 0 && data[len(data)-1] != '\n' {
		text = "\n" + text
	}
	f, err := durable.OpenIn(dir, name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text) // one write: another process may append at the same time
	return errors.Join(err, f.Close())
}
