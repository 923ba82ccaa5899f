package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
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
	environ = CleanEnviron(environ)
	git := func(args ...string) error {
		_, err := run(ctx, environ, c.Top, args...)
		return err
	}
	done = fmt.Sprintf("made its worktree %s on branch %s", path, branch)
	if git("show-ref", "--verify", "--quiet", "refs/heads/"+branch) == nil {
		return done + ", which already existed", git("worktree", "add", "--", path, branch)
	}
	return done, git("worktree", "add", "--no-track", "-b", branch, "--", path, "HEAD")
}

// run runs git in a clean environment and returns what it prints.
func run(ctx context.Context, environ []string, dir string, args ...string) (string, error) {
	options := []string{"-C", dir, "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}
	cmd := exec.CommandContext(ctx, "git", append(options, args...)...)
	cmd.Env = append(slices.Clip(environ), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	// On SIGTERM git removes a half-made worktree.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) {
		return "", ErrNoGit
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.Join(strings.Fields(stderr.String()), " "))
	}
	return stdout.String(), cmp.Or(ctx.Err(), err)
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
