package teams

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// ground is a repository with a root in it, out of git's sight, and a team.
type ground struct {
	*testing.T
	team *Team
	git  Git
	repo string
}

func newGround(t *testing.T, members ...wire.Name) *ground {
	t.Helper()
	repo := filepath.Join(world(t), "repo")
	repository(t, repo)
	must(t, os.MkdirAll(filepath.Join(repo, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(repo, "a.txt"), []byte("one\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(repo, "sub", "b.txt"), []byte("two\n"), 0o600))
	git(t, repo, "add", ".")
	git(t, repo, "commit", "-q", "-m", "files")
	path := filepath.Join(repo, ".atm")
	_, err := Make(path)
	must(t, err)
	_, _, err = Exclude(path)
	must(t, err)
	root, err := Open(Found{Path: path, Source: FromFlag, Accepted: true}, nil)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	f := &ground{T: t, team: newTeam(t, root, members...), repo: repo}
	f.git.Path, err = exec.LookPath("git")
	must(t, err)
	f.git.Env = append(WithoutRepository(os.Environ()), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	return f
}

func (f *ground) place(cwd string) (Workplace, error) {
	return f.team.Workplace(context.Background(), f.git, "bob", cwd)
}

// placed is a worktree that has to be there, and is looked at.
func (f *ground) placed(cwd, done string) Workplace {
	f.Helper()
	w, err := f.place(cwd)
	if err != nil {
		f.Fatal(err)
	}
	if !strings.Contains(w.Done, done) || (done == "") != (w.Done == "") {
		f.Errorf("done: %q, not %q", w.Done, done)
	}
	if got, _ := os.ReadFile(filepath.Join(w.Top, "sub", "b.txt")); string(got) != "two\n" {
		f.Errorf("sub/b.txt in %s holds %q", w.Top, got)
	}
	if has, _ := os.Lstat(filepath.Join(f.team.Dir().Path(), ".worktrees", ".bob.making")); has != nil {
		f.Error("it counts as being made")
	}
	if out := git(f.T, f.repo, "status", "--porcelain"); out != "" {
		f.Errorf("the repository sees %q", out)
	}
	return w
}

func (f *ground) refused(cwd, why string) *WorkplaceError {
	f.Helper()
	_, err := f.place(cwd)
	var no *WorkplaceError
	if !errors.As(err, &no) || !strings.Contains(no.Error(), why) {
		f.Errorf("%v, not %q", err, why)
		return &WorkplaceError{}
	}
	return no
}

func branchOf(t *testing.T, dir string) string {
	return strings.TrimSpace(git(t, dir, "symbolic-ref", "--short", "HEAD"))
}

// A member's worktree is made once, on its branch, and found again; whatever is
// in it, nobody touches it.
func TestWorkplace(t *testing.T) {
	t.Parallel()
	f := newGround(t, "bob")
	w := f.placed(".", "on branch atm/bob, at ")
	if w.Top != filepath.Join(f.repo, ".atm", "main", ".worktrees", "bob") || w.Dir != w.Top {
		t.Errorf("%+v", w)
	}
	if b := branchOf(t, w.Top); b != "atm/bob" {
		t.Error(b)
	}
	// Its processes find the same root without ATM_ROOT.
	found, passed, err := Find(Place{Dir: filepath.Join(w.Top, "sub"), UID: os.Getuid()})
	if err != nil || found.Path != filepath.Join(f.repo, ".atm") || len(passed) > 0 {
		t.Error(found, passed, err)
	}
	must(t, os.WriteFile(filepath.Join(w.Top, "a.txt"), []byte("mine\n"), 0o600))
	if w := f.placed("sub", ""); w.Dir != filepath.Join(w.Top, "sub") {
		t.Errorf("%+v", w)
	}
	git(t, w.Top, "switch", "-q", "-c", "elsewhere")
	f.placed("", "")
	if got, _ := os.ReadFile(filepath.Join(w.Top, "a.txt")); string(got) != "mine\n" {
		t.Errorf("its work is gone: %q", got)
	}
	// What git is not asked for is not run.
	f.git = Git{}
	f.placed(".", "")
}

// The branch that is there is used again, so that nothing committed is lost.
func TestWorkplaceAgain(t *testing.T) {
	t.Parallel()
	f := newGround(t, "bob")
	w := f.placed(".", "made")
	must(t, os.WriteFile(filepath.Join(w.Top, "c.txt"), []byte("three\n"), 0o600))
	git(t, w.Top, "add", ".")
	git(t, w.Top, "commit", "-q", "-m", "work")
	git(t, f.repo, "worktree", "remove", w.Top)
	w = f.placed(".", "atm/bob, which was there")
	if _, err := os.Stat(filepath.Join(w.Top, "c.txt")); err != nil {
		t.Error(err)
	}

	// Removed by hand: what was staged is back.
	must(t, os.WriteFile(filepath.Join(w.Top, "staged.txt"), []byte("staged\n"), 0o600))
	git(t, w.Top, "add", "staged.txt")
	must(t, os.RemoveAll(w.Top))
	f.placed(".", "removed by hand")
	if got, _ := os.ReadFile(filepath.Join(w.Top, "staged.txt")); string(got) != "staged\n" {
		t.Errorf("what was staged holds %q", got)
	}
	if out := git(t, w.Top, "status", "--porcelain"); out != "A  staged.txt\n" {
		t.Errorf("%q", out)
	}

	// Only its .git was: the files stay as they are.
	must(t, os.WriteFile(filepath.Join(w.Top, "a.txt"), []byte("mine\n"), 0o600))
	must(t, os.Remove(filepath.Join(w.Top, ".git")))
	f.placed(".", "removed by hand")
	if got, _ := os.ReadFile(filepath.Join(w.Top, "a.txt")); string(got) != "mine\n" {
		t.Errorf("a.txt holds %q", got)
	}
}

// A repository that was moved with its root and worktrees is whole again.
func TestWorkplaceMoved(t *testing.T) {
	t.Parallel()
	f := newGround(t, "bob")
	f.placed(".", "made")
	to := filepath.Join(filepath.Dir(f.repo), "moved")
	must(t, os.Rename(f.repo, to))
	root, err := Open(Found{Path: filepath.Join(to, ".atm"), Source: FromFlag, Accepted: true}, nil)
	must(t, err)
	defer root.Close()
	f.repo = to
	f.team, err = root.Team("main")
	must(t, err)
	w := f.placed(".", "")
	if b := branchOf(t, w.Top); b != "atm/bob" {
		t.Error(b)
	}
}

// Whatever instant its making was cut off at, it is finished.
func TestWorkplaceCutOff(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(f *ground, top, making string){
		"before anything": func(f *ground, top, making string) {},
		"the branch":      func(f *ground, top, making string) { git(f.T, f.repo, "branch", "atm/bob") },
		"a directory":     func(f *ground, top, making string) { must(f.T, os.Mkdir(top, 0o700)) },
		"no files yet": func(f *ground, top, making string) {
			git(f.T, f.repo, "worktree", "add", "--no-checkout", "-b", "atm/bob", top)
		},
		"some files": func(f *ground, top, making string) {
			git(f.T, f.repo, "worktree", "add", "--no-checkout", "-b", "atm/bob", top)
			must(f.T, os.Mkdir(filepath.Join(top, "sub"), 0o700))
			must(f.T, os.WriteFile(filepath.Join(top, "sub", "b.txt"), []byte("t"), 0o600))
		},
		"all files": func(f *ground, top, making string) { git(f.T, f.repo, "worktree", "add", "-b", "atm/bob", top) },
		"only the repository's side": func(f *ground, top, making string) {
			git(f.T, f.repo, "worktree", "add", "--no-checkout", "-b", "atm/bob", top)
			must(f.T, os.RemoveAll(top))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newGround(t, "bob")
			dir := filepath.Join(f.team.Dir().Path(), ".worktrees")
			must(t, os.MkdirAll(dir, 0o700))
			making := filepath.Join(dir, ".bob.making")
			must(t, os.WriteFile(making, nil, 0o600))
			spoil(f, filepath.Join(dir, "bob"), making)
			w, err := f.place(".")
			must(t, err)
			f.placed(".", "")
			if b := branchOf(t, w.Top); b != "atm/bob" {
				t.Error(b)
			}
			if out := git(t, w.Top, "status", "--porcelain"); out != "" {
				t.Errorf("%q", out)
			}
		})
	}
}

// listed are the files in some directories, to compare.
func listed(t *testing.T, dirs ...string) (out []string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil {
				out = append(out, path)
			} else if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		})
		must(t, err)
	}
	return out
}

// Where git refused to make one, nothing says that there is one half made.
func TestWorkplaceNotBegun(t *testing.T) {
	t.Parallel()
	f := newGround(t, "bob")
	git(t, f.repo, "switch", "-q", "-c", "atm/bob")
	f.refused(".", "is already")
	if left := listed(t, filepath.Join(f.team.Dir().Path(), ".worktrees")); len(left) != 1 {
		t.Errorf("%q", left)
	}
}

// What is in the way stays there and is named.
func TestWorkplaceRefused(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		why  string
		make func(f *ground, top string)
	}{
		"a file":               {"is no directory", func(f *ground, top string) { must(f.T, os.WriteFile(top, nil, 0o600)) }},
		"a link":               {"is no directory", func(f *ground, top string) { must(f.T, os.Symlink(f.repo, top)) }},
		"somebody's directory": {"is no git worktree", func(f *ground, top string) { must(f.T, os.MkdirAll(filepath.Join(top, "x"), 0o700)) }},
		"another repository":   {"of another repository", func(f *ground, top string) { repository(f.T, top) }},
		"a branch elsewhere":   {"is already", func(f *ground, top string) { git(f.T, f.repo, "switch", "-q", "-c", "atm/bob") }},
		"a branch called atm":  {"a branch called atm", func(f *ground, top string) { git(f.T, f.repo, "branch", "atm") }},
		"a repository too new": {"has no commit yet", func(f *ground, top string) {
			os.RemoveAll(filepath.Join(f.repo, ".git"))
			git(f.T, f.repo, "init", "-q")
		}},
		"no repository": {"is in no git repository", func(f *ground, top string) { os.RemoveAll(filepath.Join(f.repo, ".git")) }},
		"no git":        {"git is not installed", func(f *ground, top string) { f.git.Path = "" }},
		"what leads nowhere": {"leads nowhere", func(f *ground, top string) {
			must(f.T, os.Mkdir(top, 0o700))
			must(f.T, os.WriteFile(filepath.Join(top, ".git"), []byte("gitdir: /nowhere\n"), 0o600))
		}},
		"another repository's worktree": {"of another repository", func(f *ground, top string) {
			other := filepath.Join(filepath.Dir(f.repo), "other")
			repository(f.T, other)
			git(f.T, other, "worktree", "add", "-q", top)
		}},
		"a copy of another one": {"is a copy of", func(f *ground, top string) {
			git(f.T, f.repo, "worktree", "add", "-q", top+"-2")
			must(f.T, os.CopyFS(top, os.DirFS(top+"-2")))
		}},
		"a copy of an empty one": {"is a copy of", func(f *ground, top string) {
			git(f.T, f.repo, "worktree", "add", "-q", "--no-checkout", top+"-2")
			must(f.T, os.CopyFS(top, os.DirFS(top+"-2")))
		}},
	} {
		// Also where the making of an earlier one was cut off.
		for _, cutOff := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cut off %t", what, cutOff), func(t *testing.T) {
				t.Parallel()
				f := newGround(t, "bob")
				dir := filepath.Join(f.team.Dir().Path(), ".worktrees")
				must(t, os.MkdirAll(dir, 0o700))
				top := filepath.Join(dir, "bob")
				c.make(f, top)
				if cutOff {
					must(t, os.WriteFile(filepath.Join(dir, ".bob.making"), nil, 0o600))
				}
				before := listed(t, top, filepath.Join(f.repo, ".git", "worktrees"))
				f.refused(".", c.why)
				if d := cmp.Diff(before, listed(t, top, filepath.Join(f.repo, ".git", "worktrees"))); d != "" {
					t.Errorf("what lay there has changed: %s", d)
				}
			})
		}
	}
	f := newGround(t, "bob")
	must(t, os.Mkdir(filepath.Join(f.repo, "new"), 0o700))
	if no := f.refused("new", "is not in its worktree"); no.Hint == "" {
		t.Error("no way out")
	}
	f.refused("nowhere", "is not there")
}

// Neither the caller's environment nor the repository's hooks lead it astray.
func TestWorkplaceHostile(t *testing.T) {
	t.Parallel()
	needUnix(t)
	f := newGround(t, "bob")
	other := filepath.Join(filepath.Dir(f.repo), "other")
	repository(t, other)
	trace := filepath.Join(filepath.Dir(f.repo), "hooked")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change"} {
		must(t, os.WriteFile(filepath.Join(f.repo, ".git", "hooks", hook), []byte("#!/bin/sh\necho "+hook+" >> "+trace+"\nexit 1\n"), 0o700))
	}
	before := git(t, other, "for-each-ref")
	f.git.Env = append(f.git.Env, "GIT_DIR="+filepath.Join(other, ".git"), "GIT_WORK_TREE="+other, "GIT_INDEX_FILE="+filepath.Join(other, "index"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.worktree", "GIT_CONFIG_VALUE_0="+other, "GIT_COMMON_DIR="+filepath.Join(other, ".git"))
	_, err := f.place(".")
	must(t, err)
	if hooked, err := os.ReadFile(trace); err == nil {
		t.Errorf("hooks ran: %s", hooked)
	}
	if after := git(t, other, "for-each-ref"); after != before {
		t.Errorf("the other repository has %q", after)
	}
	if _, err := os.Lstat(filepath.Join(other, "index")); err == nil {
		t.Error("the other repository has another index")
	}
}

// Detached, bare, sparse: the repository stays as it is.
func TestWorkplaceOfOddRepositories(t *testing.T) {
	t.Parallel()
	t.Run("detached", func(t *testing.T) {
		t.Parallel()
		f := newGround(t, "bob")
		git(t, f.repo, "switch", "-q", "--detach")
		f.placed(".", "made")
	})
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		f := newGround(t, "bob")
		git(t, f.repo, "config", "core.bare", "true")
		w, err := f.place(".")
		must(t, err)
		if b := branchOf(t, w.Top); b != "atm/bob" {
			t.Error(b)
		}
	})
	t.Run("sparse", func(t *testing.T) {
		t.Parallel()
		f := newGround(t, "bob")
		git(t, f.repo, "sparse-checkout", "set", "sub")
		before := git(t, f.repo, "sparse-checkout", "list")
		f.placed("sub", "made")
		if after := git(t, f.repo, "sparse-checkout", "list"); after != before {
			t.Errorf("%q", after)
		}
		v, err := f.team.Vacate(t.Context(), f.git, "bob")
		if err != nil || v.Kept != "" {
			t.Error(v, err)
		}
	})
}

// Several at once make one.
func TestWorkplaceAtOnce(t *testing.T) {
	t.Parallel()
	f := newGround(t, "bob")
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 4 {
		wg.Go(func() {
			w, err := f.place(".")
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if w.Done != "" {
				made++
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

// The doctor names what is left, half made or lost, and nothing else.
func TestDoctorWorkplaces(t *testing.T) {
	t.Parallel()
	f := newGround(t, "bob")
	toml := filepath.Join(f.team.Dir().Path(), "team.toml")
	must(t, os.WriteFile(toml, []byte("[members.bob]\nworktree = true\n"), 0o600))
	w := f.placed(".", "made")
	codes := func() string {
		var out []string
		for _, c := range f.team.Root().Doctor(t.Context(), Place{UID: -1}, false) {
			if strings.HasPrefix(c.Code, "worktree.") {
				out = append(out, c.Code+" "+c.Fix)
			}
		}
		return strings.Join(out, ", ")
	}
	want := func(codesAre string) {
		t.Helper()
		if got := codes(); got != codesAre {
			t.Errorf("%q, not %q", got, codesAre)
		}
	}
	want("")
	making := filepath.Join(filepath.Dir(w.Top), ".bob.making")
	must(t, os.WriteFile(making, nil, 0o600))
	want("worktree.half_made atm up bob")
	must(t, os.Remove(making))
	must(t, os.Remove(filepath.Join(w.Top, ".git")))
	want("worktree.lost atm up bob")
	f.placed(".", "removed by hand")
	want("")
	must(t, os.WriteFile(toml, []byte("[members.bob]\n"), 0o600))
	want("worktree.left git worktree remove .worktrees/bob")
}

// Only what holds nothing that would be lost is removed.
func TestVacate(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		kept string
		work func(t *testing.T, top string)
	}{
		"clean":     {"", func(t *testing.T, top string) {}},
		"committed": {"", func(t *testing.T, top string) { git(t, top, "commit", "-q", "--allow-empty", "-m", "work") }},
		"ignored": {"", func(t *testing.T, top string) {
			must(t, os.WriteFile(filepath.Join(top, ".gitignore"), []byte("*.o\n"), 0o600))
			git(t, top, "add", ".gitignore")
			git(t, top, "commit", "-q", "-m", "ignore")
			must(t, os.WriteFile(filepath.Join(top, "x.o"), nil, 0o600))
		}},
		"stashed": {"", func(t *testing.T, top string) {
			must(t, os.WriteFile(filepath.Join(top, "a.txt"), []byte("x"), 0o600))
			git(t, top, "stash", "-q")
		}},
		"changed":   {"not committed: a.txt", func(t *testing.T, top string) { must(t, os.WriteFile(filepath.Join(top, "a.txt"), nil, 0o600)) }},
		"untracked": {"not committed: n\\new", func(t *testing.T, top string) { must(t, os.WriteFile(filepath.Join(top, "n\new"), nil, 0o600)) }},
		"untracked, and not shown": {"not committed: new", func(t *testing.T, top string) {
			git(t, top, "config", "status.showUntrackedFiles", "no")
			must(t, os.WriteFile(filepath.Join(top, "new"), nil, 0o600))
		}},
		"staged": {"not committed: a.txt", func(t *testing.T, top string) {
			git(t, top, "rm", "-q", "--cached", "a.txt")
			os.Remove(filepath.Join(top, "a.txt"))
		}},
		"hidden": {"told not to look at a.txt", func(t *testing.T, top string) {
			git(t, top, "update-index", "--assume-unchanged", "a.txt")
			must(t, os.WriteFile(filepath.Join(top, "a.txt"), nil, 0o600))
		}},
		"on no branch": {"on no branch", func(t *testing.T, top string) {
			git(t, top, "switch", "-q", "--detach")
			git(t, top, "commit", "-q", "--allow-empty", "-m", "work")
		}},
		"on a ref of its own": {"on no branch", func(t *testing.T, top string) {
			git(t, top, "symbolic-ref", "HEAD", "refs/worktree/x")
			git(t, top, "commit", "-q", "--allow-empty", "-m", "work")
		}},
		"detached at a branch": {"", func(t *testing.T, top string) { git(t, top, "switch", "-q", "--detach") }},
		"in a merge": {"a merge is under way", func(t *testing.T, top string) {
			git(t, top, "switch", "-q", "-c", "side")
			git(t, top, "commit", "-q", "--allow-empty", "-m", "side")
			git(t, top, "switch", "-q", "atm/bob")
			git(t, top, "merge", "-q", "--no-ff", "--no-commit", "side")
		}},
		"locked": {"locked", func(t *testing.T, top string) { git(t, top, "worktree", "lock", top) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newGround(t, "bob")
			w := f.placed(".", "made")
			c.work(t, w.Top)
			v, err := f.team.Vacate(t.Context(), f.git, "bob")
			must(t, err)
			if (c.kept == "") != (v.Kept == "") || !strings.Contains(v.Kept, c.kept) {
				t.Errorf("kept: %q, not %q", v.Kept, c.kept)
			}
			if _, err := os.Lstat(w.Top); (err == nil) != (c.kept != "") {
				t.Error(err)
			}
			if out := git(t, f.repo, "branch", "--list", "atm/bob"); out == "" {
				t.Error("its branch is gone")
			}
		})
	}
	f := newGround(t, "bob")
	f.placed(".", "made")
	hold, err := f.team.HoldRunner(t.Context(), "bob")
	must(t, err)
	if _, err := f.team.Vacate(t.Context(), f.git, "bob"); !errors.Is(err, mailbox.ErrRunning) {
		t.Error(err)
	}
	must(t, hold.Release())
	if all, err := f.team.Workplaces(); err != nil || len(all) != 1 || all[0] != "bob" {
		t.Error(all, err)
	}
}
