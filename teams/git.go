package teams

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

// Git is the program that makes and removes members' worktrees. Nothing else
// here runs it. Its zero value is one that is not installed.
//
// It is run without a shell, without the repository's hooks, and without what
// the caller's environment says about another repository: a hook of git's has
// GIT_DIR and its like set.
type Git struct {
	Path string   // of the program; "": there is none
	Env  []string // the caller's environment

	held *os.File // stays open in what is run; nil: nothing
}

// ErrNoGit says that git is not installed, or not on the PATH.
var ErrNoGit = errors.New("git is not installed, or not on the PATH")

// gitQuits is how long git may take, once it was told to end, to take back what
// it has half made.
const gitQuits = 5 * time.Second

// gitError is what git said when it failed.
type gitError struct {
	verb string
	said string
}

func (e *gitError) Error() string { return "git " + e.verb + ": " + e.said }

// holding is a git that holds on to a file while it runs, also when this process
// is killed.
func (g Git) holding(f *os.File) Git {
	g.held = f
	return g
}

// run runs git in a directory and gives what it wrote to stdout.
func (g Git) run(ctx context.Context, dir string, args ...string) (string, error) {
	if g.Path == "" {
		return "", ErrNoGit
	}
	// What watches files in the background would outlive us. -c reaches the gits
	// that git starts as well.
	own := []string{"-C", dir, "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "status.showUntrackedFiles=all"}
	c := exec.CommandContext(ctx, g.Path, append(own, args...)...)
	c.Env = append(WithoutRepository(g.Env), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0")
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = gitQuits
	if g.held != nil && canInherit {
		c.ExtraFiles = []*os.File{g.held}
	}
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &exit):
		return out.String(), &gitError{gitVerb(args), gitSaid(said.String(), err)}
	}
	return "", fmt.Errorf("git %s: %w", gitVerb(args), err)
}

// gitVerb is the command among git's arguments, for an error.
func gitVerb(args []string) string {
	i := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	switch {
	case i < 0:
		return strings.Join(args, " ")
	case args[i] == "worktree" && i+1 < len(args):
		return args[i] + " " + args[i+1]
	}
	return args[i]
}

// gitSaid is what git wrote about a failure, in one line: what it calls fatal,
// else the last that it said.
func gitSaid(stderr string, err error) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for _, l := range lines {
		for _, grave := range []string{"fatal: ", "error: "} {
			if said, ok := strings.CutPrefix(l, grave); ok {
				return said
			}
		}
	}
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return err.Error()
}

// WithoutRepository is an environment without what would lead git to another
// repository than that of the directory it runs in, or have it see another
// index or configuration there. Who authors, how a remote is reached and which
// files configure the user stays.
func WithoutRepository(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		// The list of `git rev-parse --local-env-vars`, and what those calls do
		// not need that would tell git of other places.
		case "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_OBJECT_DIRECTORY",
			"GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS",
			"GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES",
			"GIT_QUARANTINE_PATH", "GIT_INTERNAL_SUPER_PREFIX", "GIT_LITERAL_PATHSPECS", "GIT_ATTR_SOURCE":
			return true
		}
		return strings.HasPrefix(name, "GIT_CONFIG_KEY_") || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
	})
}
