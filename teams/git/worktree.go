package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"syscall"
	"time"
)

// AddWorktree adds a worktree of c's repository at path, on the given branch, which it makes from c's HEAD if there is
// none. An existing worktree of that repository is kept, whatever its branch, and done is "". git refuses a path that
// is otherwise in use.
//
// git runs with the caller's environment environ, and without the repository's hooks.
func AddWorktree(ctx context.Context, environ []string, c Checkout, path, branch string) (done string, err error) {
	if existing, ok := At(path); ok && existing.Common == c.Common && existing.gitDir != c.gitDir {
		return "", nil
	}
	done = fmt.Sprintf("made its worktree %s on branch %s", path, branch)
	if run(ctx, environ, c.Top, "show-ref", "--verify", "--quiet", "refs/heads/"+branch) == nil {
		return done + ", which already existed", run(ctx, environ, c.Top, "worktree", "add", "--", path, branch)
	}
	return done, run(ctx, environ, c.Top, "worktree", "add", "--no-track", "-b", branch, "--", path, "HEAD")
}

func run(ctx context.Context, environ []string, dir string, args ...string) error {
	options := []string{"-C", dir, "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}
	cmd := exec.CommandContext(ctx, "git", append(options, args...)...)
	cmd.Env = append(CleanEnviron(environ), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	// On SIGTERM git removes a half-made worktree.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) {
		return errors.New("git is not installed or not on PATH")
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, bytes.ReplaceAll(bytes.TrimSpace(output), []byte("\n"), []byte(" ")))
	}
	return ctx.Err()
}

// CleanEnviron returns environ without the variables that point git to another repository, index or configuration
// than those of its working directory (git rev-parse --local-env-vars); git sets them for its hooks.
func CleanEnviron(environ []string) []string {
	variables := regexp.MustCompile(`^GIT_(ALTERNATE_OBJECT_DIRECTORIES|ATTR_SOURCE|CEILING_DIRECTORIES|` +
		`COMMON_DIR|CONFIG|CONFIG_(COUNT|PARAMETERS|KEY_.*|VALUE_.*)|DIR|GRAFT_FILE|IMPLICIT_WORK_TREE|INDEX_FILE|` +
		`INTERNAL_SUPER_PREFIX|LITERAL_PATHSPECS|NAMESPACE|NO_REPLACE_OBJECTS|OBJECT_DIRECTORY|PREFIX|QUARANTINE_PATH|` +
		`REPLACE_REF_BASE|SHALLOW_FILE|WORK_TREE)=`)
	return slices.DeleteFunc(slices.Clone(environ), variables.MatchString)
}
