package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// IsCommittedSince reports whether a commit that HEAD has, and that changes the file, was made after then, in a later
// second: git knows no smaller time. path is absolute and without symbolic links; a file in no repository is not
// committed. It runs no program of the repository's.
func IsCommittedSince(ctx context.Context, path string, since time.Time) bool {
	c, ok := Nearest(filepath.Dir(path))
	if !ok || !c.HasRepository() {
		return false
	}
	rel, err := filepath.Rel(c.Top, path)
	if err != nil {
		return false
	}
	environ := append(CleanEnviron(os.Environ()), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_LITERAL_PATHSPECS=1")
	commit, err := run(ctx, environ, c.Top, "rev-list", "-1", fmt.Sprintf("--since=@%d", since.Unix()+1), "HEAD", "--", filepath.ToSlash(rel))
	return err == nil && commit != ""
}
