package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
)

// command makes a command of git's for the repository whose .git is in dir. It is the only place that does: nothing that a
// repository brings along is run, nothing is fetched, nobody is asked, and no lock is taken for a better index.
//
//   - Hooks and core.fsmonitor are off. Aliases do not hide git's own commands, and nothing that we call uses a pager, a
//     filter or a diff driver, but for AddWorktree.
//   - The remotes of a partial clone are not asked for what is missing: the first variable says so, and a git that does not
//     know it yet (before 2.39.4) finds that no protocol is allowed.
//   - The caller's environment is kept, with the user's own configuration and what it says of safe.directory, but not what
//     points git to another repository or reads a path in another way (CleanEnviron, pathspecs).
//   - git looks no further up than dir.
func command(ctx context.Context, environ []string, dir string, args ...string) *exec.Cmd {
	options := []string{"-C", dir, "--no-pager", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}
	cmd := exec.CommandContext(ctx, "git", append(options, args...)...)
	cmd.Env = append(slices.DeleteFunc(CleanEnviron(environ), pathspecs().MatchString), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", noProtocol, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	// On SIGTERM git removes a half-made worktree.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

const noProtocol = "GIT_ALLOW_PROTOCOL=none"

var pathspecs = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^GIT_(GLOB|NOGLOB|ICASE)_PATHSPECS=`) }) // CleanEnviron removes LITERAL

// run runs a command of git's and returns what it prints.
func run(ctx context.Context, environ []string, dir string, args ...string) (string, error) {
	return output(ctx, command(ctx, environ, dir, args...), args[0])
}

func output(ctx context.Context, cmd *exec.Cmd, verb string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	lockfile.Waits("git " + verb)
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) {
		return "", ErrNoGit
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("git %s: %w: %s", verb, err, strings.Join(strings.Fields(stderr.String()), " "))
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
