package rootdir

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
)

// IgnoreFile in a root hides it from git, and from npm, cargo and others that publish what git does not ignore.
const IgnoreFile = ".gitignore"

// Hide writes the root's IgnoreFile, unless there is one.
func Hide(root string) error {
	d, err := durable.Open(root)
	if err != nil {
		return err
	}
	defer d.Close()
	if err = d.Publish(IgnoreFile, strings.NewReader("*\n"), true); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// SeenByDocker returns the .dockerignore that lacks the root, if beside the root there is a file from which docker builds
// an image: it would put the mail into that. Docker reads no other ignore file.
func SeenByDocker(root string) (ignore string, isSeen bool) {
	dir, name := filepath.Split(root)
	for _, pattern := range []string{"Dockerfile*", "*.Dockerfile", "Containerfile*"} {
		files, _ := fs.Glob(os.DirFS(dir), pattern)
		isSeen = isSeen || len(files) > 0
	}
	ignore = filepath.Join(dir, ".dockerignore")
	if !isSeen {
		return ignore, false
	}
	data, _ := durable.ReadRegular(ignore, 1<<20)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		line, isKept := strings.CutPrefix(line, "!")
		line = strings.TrimPrefix(strings.Trim(line, "/"), "**/")
		if matches, _ := path.Match(line, name); matches || line == "**" { // the last one counts
			isSeen = isKept
		}
	}
	return ignore, isSeen
}
