package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testtree"
)

// Every command of git's runs nothing that the repository names, and works in that repository only, whatever the caller's
// environment says. A checkout may use filters and, in a partial clone, its remote.
func TestCommand(t *testing.T) {
	testtree.NeedUnix(t)
	top := testtree.Make(t)
	app := filepath.Join(top, "app")
	repository(t, app)
	write(t, filepath.Join(app, "a.txt"), "x")
	write(t, filepath.Join(app, ".git", "config.worktree"), "")
	gitIn(t, app, "add", "a.txt")
	gitIn(t, app, "commit", "-q", "-m", "a")
	real, err := exec.LookPath("git")
	must(t, err)
	calls := filepath.Join(top, "calls")
	write(t, filepath.Join(top, "bin", "git"), "#!/bin/sh\n{ echo \"args $*\"; env | grep ^GIT_; echo; } >>"+calls+"\nexec "+real+" \"$@\"\n")
	must(t, os.Chmod(filepath.Join(top, "bin", "git"), 0o700))
	t.Setenv("PATH", filepath.Join(top, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"DIR", "WORK_TREE", "INDEX_FILE", "COMMON_DIR", "OBJECT_DIRECTORY", "CONFIG_PARAMETERS", "LITERAL_PATHSPECS", "ICASE_PATHSPECS"} {
		t.Setenv("GIT_"+name, "elsewhere")
	}
	c, _ := At(app)
	ctx := t.Context()
	uses := map[string]func(ctx context.Context) error{
		"what git tracks": func(ctx context.Context) error {
			_, err := TrackedAt(ctx, os.Environ(), filepath.Join(app, ".atm"))
			return err
		},
		"a commit": func(ctx context.Context) error {
			if !IsCommittedSince(ctx, filepath.Join(app, "a.txt"), time.Now().Add(-time.Hour)) {
				t.Error("not committed")
			}
			return nil
		},
		"a worktree": func(ctx context.Context) error {
			_, err := AddWorktree(ctx, os.Environ(), c, filepath.Join(top, "wt"), "wt")
			return err
		},
	}
	for what, use := range uses {
		must(t, os.WriteFile(calls, nil, 0o600))
		if err := use(ctx); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		data, err := os.ReadFile(calls)
		must(t, err)
		all := strings.Split(strings.TrimSpace(string(data)), "\n\n")
		for _, call := range all {
			if call == "" {
				t.Errorf("%s: git did not run", what)
			}
			wants := []string{"core.hooksPath=/dev/null", "core.fsmonitor=false", "--no-pager", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_CEILING_DIRECTORIES=" + top + "\n"}
			if !strings.Contains(call, "worktree add") {
				wants = append(wants, "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
			}
			for _, want := range wants {
				if !strings.Contains(call+"\n", want) {
					t.Errorf("%s: %q is not in\n%s", what, want, call)
				}
			}
			if strings.Contains(call, "=elsewhere") {
				t.Errorf("%s: inherited too much:\n%s", what, call)
			}
		}
	}
}
