package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrNoGit says that git is not installed, or not on the PATH.
var ErrNoGit = errors.New("git is not installed, or not on the PATH")

// AddWorktree makes a worktree of a checkout's repository at path, on a branch
// that begins at the checkout's HEAD unless there is one of that name. A worktree
// of that repository which is there is used as it is, whatever its branch and
// state, and done is "". What else is in the way, git itself refuses.
//
// environ is the caller's environment. git runs without the repository's hooks.
func AddWorktree(ctx context.Context, environ []string, c Checkout, path, branch string) (done string, err error) {
	if there, ok := At(path); ok && there.Common == c.Common && there.GitDir != c.GitDir {
		return "", nil
	}
	args := []string{"worktree", "add", "--no-track", "-b", branch, "--", path, "HEAD"}
	done = fmt.Sprintf("made its worktree %s on branch %s", path, branch)
	_, err = run(ctx, environ, c.Top, "show-ref", "--verify", "--quiet", "refs/heads/"+branch)
	if err == nil {
		args = []string{"worktree", "add", "--", path, branch}
		done += ", which was there"
	}
	var refused *refusedError
	if err != nil && !errors.As(err, &refused) {
		return "", err
	}
	out, err := run(ctx, environ, c.Top, args...)
	if err != nil {
		return "", err
	}
	if _, head, ok := strings.Cut(out, "HEAD is now at "); ok {
		head, _, _ = strings.Cut(head, " ")
		done += ", at " + strings.TrimSpace(head)
	}
	return done, nil
}

// refusedError is what git said when it did not do something.
type refusedError struct{ command, message string }

func (e *refusedError) Error() string { return "git " + e.command + ": " + e.message }

// run runs git in a directory and returns its output.
func run(ctx context.Context, environ []string, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}, args...)...)
	cmd.Env = append(WithoutRepository(environ), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	// Told to end, git takes back what it has half made.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) {
		return "", ErrNoGit
	}
	command := strings.Join(args[:min(2, len(args))], " ")
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %w", command, err)
	}
	return "", &refusedError{command, reason(said.String(), err)}
}

// reason is what git wrote about a failure, in one line: what it calls fatal or
// an error, else the last line.
func reason(stderr string, err error) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for _, prefix := range []string{"fatal: ", "error: "} {
		for _, l := range lines {
			if said, ok := strings.CutPrefix(l, prefix); ok {
				return said
			}
		}
	}
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return err.Error()
}

// repositoryVariables lead git to another repository, index or configuration
// than those of the directory it runs in: `git rev-parse --local-env-vars`, and
// some more that name other places.
var repositoryVariables = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_ATTR_SOURCE", "GIT_CEILING_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_COUNT",
	"GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX",
	"GIT_LITERAL_PATHSPECS", "GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_QUARANTINE_PATH",
	"GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
}

// WithoutRepository is an environment without what would lead git to another
// repository than that of the directory it runs in, as the environment of git's
// own hooks does.
func WithoutRepository(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(repositoryVariables, name) || strings.HasPrefix(name, "GIT_CONFIG_KEY_") || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
	})
}
