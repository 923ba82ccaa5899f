package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testtree"
)

// write writes a file and makes its directory.
func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte(text), 0o600))
}

// environ is the environment of git in the tests: that of gitIn.
func environ(t *testing.T) []string {
	return append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
}

// tracked returns the files that git tracks in a directory, with blanks between.
func tracked(t *testing.T, dir string) string {
	t.Helper()
	got, err := TrackedAt(t.Context(), environ(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range got {
		got[i] = filepath.ToSlash(f)
	}
	return strings.Join(got, " ")
}

// Whatever brings files into the index, they are found; what leaves the index is not tracked any more.
func TestTrackedAt(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, app string, git func(args ...string))
		want string
	}{
		{"nothing", func(t *testing.T, app string, git func(args ...string)) {}, ""},
		{"checkout", func(t *testing.T, app string, git func(args ...string)) { git("checkout", "-q", "pr") }, "main/team.toml"},
		{"checkout and back", func(t *testing.T, app string, git func(args ...string)) {
			git("checkout", "-q", "pr")
			git("checkout", "-q", "main")
		}, ""},
		{"checkout of a path", func(t *testing.T, app string, git func(args ...string)) { git("checkout", "-q", "pr", "--", ".") }, "main/team.toml"},
		{"merge", func(t *testing.T, app string, git func(args ...string)) { git("merge", "-q", "pr") }, "main/team.toml"},
		{"merge without a commit", func(t *testing.T, app string, git func(args ...string)) {
			git("merge", "-q", "--no-ff", "--no-commit", "pr")
		}, "main/team.toml"},
		{"cherry-pick", func(t *testing.T, app string, git func(args ...string)) { git("cherry-pick", "pr") }, "main/team.toml"},
		{"rebase", func(t *testing.T, app string, git func(args ...string)) { git("rebase", "-q", "pr") }, "main/team.toml"},
		{"stash pop", func(t *testing.T, app string, git func(args ...string)) { git("stash", "pop", "-q") }, "main/bob/inbox/n.txt"},
		{"reset", func(t *testing.T, app string, git func(args ...string)) { git("reset", "-q", "--hard", "pr") }, "main/team.toml"},
		{"add", func(t *testing.T, app string, git func(args ...string)) { git("add", "-f", ".atm") }, "FORMAT"},
		{"add -N", func(t *testing.T, app string, git func(args ...string)) { git("add", "-N", "-f", ".atm") }, "FORMAT"},
		{"assumed to be unchanged", func(t *testing.T, app string, git func(args ...string)) {
			git("checkout", "-q", "pr")
			git("update-index", "--assume-unchanged", ".atm/main/team.toml")
		}, "main/team.toml"},
		{"skipped", func(t *testing.T, app string, git func(args ...string)) {
			git("checkout", "-q", "pr")
			git("update-index", "--skip-worktree", ".atm/main/team.toml")
		}, "main/team.toml"},
		{"a sparse index", func(t *testing.T, app string, git func(args ...string)) {
			git("checkout", "-q", "pr")
			git("sparse-checkout", "set", "--cone", "--sparse-index", "other")
		}, "main/team.toml"},
		{"an index in pieces, with short paths", func(t *testing.T, app string, git func(args ...string)) {
			git("checkout", "-q", "pr")
			git("update-index", "--split-index", "--index-version", "4")
		}, "main/team.toml"},
		{"a conflict", func(t *testing.T, app string, git func(args ...string)) {
			write(t, filepath.Join(app, ".atm", "main", "team.toml"), "mine")
			git("add", "-f", ".atm/main/team.toml")
			git("commit", "-q", "-m", "mine")
			cmd := exec.Command("git", "-C", app, "-c", "user.name=x", "-c", "user.email=x", "merge", "-q", "pr")
			cmd.Env = environ(t)
			cmd.Run()
		}, "main/team.toml main/team.toml"},
		{"a submodule in its place", func(t *testing.T, app string, git func(args ...string)) {
			must(t, os.RemoveAll(filepath.Join(app, ".atm")))
			git("submodule", "--quiet", "add", "-f", "../lib", ".atm")
		}, ". lib.txt"},
		{"a link in its place", func(t *testing.T, app string, git func(args ...string)) {
			testtree.NeedUnix(t)
			must(t, os.RemoveAll(filepath.Join(app, ".atm")))
			must(t, os.Symlink("/tmp", filepath.Join(app, ".atm")))
			git("add", "-f", ".atm")
		}, "."},
		{"a repository in its place", func(t *testing.T, app string, git func(args ...string)) {
			must(t, os.RemoveAll(filepath.Join(app, ".atm")))
			git("clone", "-q", "../lib", ".atm")
		}, "lib.txt"},
		{"a repository in place of a member", func(t *testing.T, app string, git func(args ...string)) {
			git("clone", "-q", "../lib", ".atm/main/bob")
		}, "main/bob/lib.txt"},
		{"a member's worktree", func(t *testing.T, app string, git func(args ...string)) {
			git("worktree", "add", "-q", ".atm/main/.worktrees/bob", "pr")
		}, ""},
		{"a .git without a repository", func(t *testing.T, app string, git func(args ...string)) {
			write(t, filepath.Join(app, ".atm", ".git"), "gitdir: nowhere")
			must(t, os.MkdirAll(filepath.Join(app, ".atm", "main", ".git"), 0o700))
		}, ""},
		{"names that begin alike", func(t *testing.T, app string, git func(args ...string)) {
			write(t, filepath.Join(app, ".atmos", "x"), "x")
			write(t, filepath.Join(app, "sub", ".atm", "x"), "x")
			git("add", "-f", ".")
			git("rm", "-q", "--cached", "-r", ".atm")
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			top := testtree.Make(t)
			app, lib := filepath.Join(top, "app"), filepath.Join(top, "lib")
			repository(t, lib)
			write(t, filepath.Join(lib, "lib.txt"), "x")
			gitIn(t, lib, "add", ".")
			gitIn(t, lib, "commit", "-q", "-m", "lib")
			repository(t, app)
			git := func(args ...string) { t.Helper(); gitIn(t, app, args...) }
			git("checkout", "-q", "-b", "pr")
			write(t, filepath.Join(app, ".atm", "main", "team.toml"), "evil")
			write(t, filepath.Join(app, "other", "x"), "x")
			git("add", ".")
			git("commit", "-q", "-m", "pr")
			git("checkout", "-q", "main")
			write(t, filepath.Join(app, ".atm", "main", "bob", "inbox", "n.txt"), "x")
			git("add", ".")
			git("stash", "-q")
			write(t, filepath.Join(app, ".atm", "FORMAT"), "1\n")
			write(t, filepath.Join(app, ".git", "info", "exclude"), "/.atm/\n")
			tt.do(t, app, git)
			if got := tracked(t, filepath.Join(app, ".atm")); got != tt.want {
				t.Errorf("git tracks %q, want %q", got, tt.want)
			}
		})
	}
}

// A repository around the repository counts too, and a linked worktree has its own index. A root inside of .git is
// nothing that git tracks.
func TestTrackedAround(t *testing.T) {
	top := testtree.Make(t)
	app, inner := filepath.Join(top, "app"), filepath.Join(top, "app", "inner")
	repository(t, app)
	write(t, filepath.Join(inner, ".atm", "x"), "x")
	gitIn(t, app, "add", "-f", ".")
	gitIn(t, app, "commit", "-q", "-m", "one")
	repository(t, inner)
	if got := tracked(t, filepath.Join(inner, ".atm")); got != "x" {
		t.Errorf("the outer repository tracks %q", got)
	}
	gitIn(t, app, "worktree", "add", "-q", "../wt")
	gitIn(t, app, "rm", "-q", "-r", "--cached", "inner/.atm")
	if got := tracked(t, filepath.Join(inner, ".atm")); got != "" {
		t.Errorf("the main worktree tracks %q", got)
	}
	if got := tracked(t, filepath.Join(top, "wt", "inner", ".atm")); got != "x" {
		t.Errorf("the linked worktree tracks %q", got)
	}
	if got := tracked(t, filepath.Join(app, ".git", ".atm")); got != "" {
		t.Errorf("inside of .git git tracks %q", got)
	}
	gitIn(t, top, "clone", "-q", "--bare", "app", "bare/.git")
	if got := tracked(t, filepath.Join(top, "bare", ".atm")); got != "" {
		t.Errorf("a bare repository tracks %q", got)
	}
}

// While git writes files, nobody knows what it will track. A new index that waits for a commit's message counts.
func TestTrackedBusy(t *testing.T) {
	top := testtree.Make(t)
	app := filepath.Join(top, "app")
	repository(t, app)
	root := filepath.Join(app, ".atm")
	write(t, filepath.Join(app, "a.txt"), "x")
	gitIn(t, app, "add", "a.txt")
	before, err := os.ReadFile(filepath.Join(app, ".git", "index"))
	must(t, err)
	lock := filepath.Join(app, ".git", "index.lock")
	isBusy := func() bool {
		_, err := TrackedAt(t.Context(), environ(t), root)
		if err != nil && !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
		return err != nil
	}
	write(t, lock, "")
	if !isBusy() {
		t.Error("git has just begun, and nobody waits")
	}
	must(t, os.WriteFile(lock, before[:len(before)/2], 0o600))
	if !isBusy() {
		t.Error("half an index counts")
	}
	must(t, os.WriteFile(lock, before, 0o600))
	waits := func() { must(t, os.Chtimes(lock, time.Time{}, time.Now().Add(-time.Minute))) }
	waits()
	if isBusy() {
		t.Error("a commit that waits for its message holds everything up")
	}
	must(t, os.Remove(lock))
	write(t, filepath.Join(root, "x"), "x")
	gitIn(t, app, "add", "-f", ".atm")
	must(t, os.Rename(filepath.Join(app, ".git", "index"), lock))
	waits()
	must(t, os.WriteFile(filepath.Join(app, ".git", "index"), before, 0o600))
	if got := tracked(t, root); got != "x" {
		t.Errorf("of the next index counts %q", got)
	}
}

// If git does not answer, it is not known what it tracks. Without a repository nobody asks.
func TestTrackedUnknown(t *testing.T) {
	top := testtree.Make(t, "dir plain/.atm")
	app := filepath.Join(top, "app")
	repository(t, app)
	write(t, filepath.Join(app, "a.txt"), "x")
	gitIn(t, app, "add", "a.txt")
	must(t, os.WriteFile(filepath.Join(app, ".git", "index"), []byte("torn"), 0o600))
	if got, err := TrackedAt(t.Context(), environ(t), filepath.Join(app, ".atm")); err == nil {
		t.Errorf("of a torn index: %+v", got)
	}
	t.Setenv("PATH", top)
	if got, err := TrackedAt(t.Context(), nil, filepath.Join(app, ".atm")); err == nil || !strings.Contains(err.Error(), "git is not installed") {
		t.Errorf("without git: %+v, %v", got, err)
	}
	if got, err := TrackedAt(t.Context(), nil, filepath.Join(top, "plain", ".atm")); err != nil || len(got) > 0 {
		t.Errorf("without a repository: %+v, %v", got, err)
	}
}

// The repository's own configuration runs nothing.
func TestTrackedRunsNothing(t *testing.T) {
	testtree.NeedUnix(t)
	top := testtree.Make(t)
	app := filepath.Join(top, "app")
	repository(t, app)
	write(t, filepath.Join(app, "a.txt"), "x")
	gitIn(t, app, "add", "a.txt")
	ran := filepath.Join(top, "ran")
	for _, name := range []string{"core.fsmonitor", "core.sshCommand", "core.pager", "alias.ls-files", "filter.x.clean", "filter.x.smudge"} {
		gitIn(t, app, "config", name, "!touch "+ran)
	}
	write(t, filepath.Join(app, ".git", "hooks", "post-index-change"), "#!/bin/sh\ntouch "+ran+"\n")
	must(t, os.Chmod(filepath.Join(app, ".git", "hooks", "post-index-change"), 0o700))
	write(t, filepath.Join(app, ".gitattributes"), "* filter=x\n")
	tracked(t, filepath.Join(app, ".atm"))
	if _, err := os.Stat(ran); err == nil {
		t.Error("the configuration of the repository was obeyed")
	}
}
