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
// committed.
func IsCommittedSince(ctx context.Context, path string, since time.Time) bool {
	c, ok := Nearest(filepath.Dir(path))
	if !ok || c.Common == "" {
		return false
	}
	rel, err := filepath.Rel(c.Top, path)
	if err != nil {
		return false
	}
	after := fmt.Sprintf("--since=@%d", since.Unix()+1)
	commit, err := run(ctx, os.Environ(), c.Top, "rev-list", "-1", after, "HEAD", "--", literally(filepath.ToSlash(rel)))
	return err == nil && commit != ""
}
