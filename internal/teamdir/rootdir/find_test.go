package rootdir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/testtree"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// needRoot skips a test that changes the owner of files, unless it runs as root.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs to run as root, to give files to somebody else")
	}
}

func TestFind(t *testing.T) {
	linked := []string{ // wt is a linked worktree of the repository app, made without git
		"repo app/.git", "repo app/.git/worktrees/wt",
		"file app/.git/worktrees/wt/commondir ../..\n", "file app/.git/worktrees/wt/gitdir ../../../../wt/.git\n",
		"file wt/.git gitdir: ../app/.git/worktrees/wt\n",
		"dir wt/sub",
	}
	tests := []struct {
		name    string
		world   []string
		dir     string
		flag    string // relative to the world, as are path and env
		env     string
		path    string
		source  string
		skipped []string
		err     string
	}{
		{name: "here", world: []string{"root a/.atm"}, dir: "a", path: "a/.atm", source: FromAbove},
		{name: "above", world: []string{"root a/.atm", "dir a/b/c"}, dir: "a/b/c", path: "a/.atm", source: FromAbove},
		{name: "from inside of the root", world: []string{"root a/.atm"}, dir: "a/.atm/main", path: "a/.atm", source: FromAbove},
		{name: "the nearest", world: []string{"root a/.atm", "root a/b/.atm", "dir a/b/c"}, dir: "a/b/c", path: "a/b/.atm", source: FromAbove},
		{name: "flag before environment", world: []string{"root a/.atm", "root x", "root y", "dir a"}, dir: "a", flag: "x", env: "y", path: "x", source: FromFlag},
		{name: "environment before search", world: []string{"root a/.atm", "root y"}, dir: "a", env: "y", path: "y", source: FromEnv},
		{name: "home", world: []string{"root home/.atm", "dir a"}, dir: "a", path: "home/.atm", source: FromHome},
		{name: "home is above", world: []string{"root home/.atm", "root .atm", "dir home/a"}, dir: "home/a", path: "home/.atm", source: FromHome},
		{name: "above before home", world: []string{"root home/.atm", "root a/.atm", "dir a/b"}, dir: "a/b", path: "a/.atm", source: FromAbove},
		{name: "main worktree", world: append(linked, "root app/.atm", "root .atm"), dir: "wt/sub", path: "app/.atm", source: FromMainWorktree},
		{name: "own worktree first", world: append(linked, "root app/.atm", "root wt/.atm"), dir: "wt/sub", path: "wt/.atm", source: FromAbove},
		{name: "above the linked worktree", world: append(linked, "root .atm"), dir: "wt/sub", path: ".atm", source: FromAbove},
		{name: "main worktree is home", world: []string{"root home/.atm", "repo home/.git", "repo home/.git/worktrees/wt", "file home/.git/worktrees/wt/commondir ../..", "file home/.git/worktrees/wt/gitdir ../../../../wt/.git",
			"file wt/.git gitdir: ../home/.git/worktrees/wt"}, dir: "wt", path: "home/.atm", source: FromHome},
		{name: "no FORMAT", world: []string{"dir a/.atm/main", "root .atm", "dir a/b"}, dir: "a/b", path: ".atm", source: FromAbove,
			skipped: []string{"passed over a/.atm: it has no FORMAT file, so it is not a root"}},
		{name: "FORMAT is a directory", world: []string{"dir a/.atm/FORMAT", "root .atm"}, dir: "a", path: ".atm", source: FromAbove,
			skipped: []string{"passed over a/.atm: it has no FORMAT file, so it is not a root"}},
		{name: "a file called .atm", world: []string{"file a/.atm x", "root .atm"}, dir: "a", path: ".atm", source: FromAbove},
		{name: "a link is passed over", world: []string{"root x", "link a/.atm ../x", "root .atm"}, dir: "a", path: ".atm", source: FromAbove,
			skipped: []string{"passed over a/.atm: it is a symbolic link, which counts only if you name it"}},
		{name: "a link at home too", world: []string{"root x", "link home/.atm ../x", "dir a"}, dir: "a", err: "no root found in a or above",
			skipped: []string{"passed over home/.atm: it is a symbolic link, which counts only if you name it"}},
		{name: "a named link is followed", world: []string{"root x", "link a/y ../x"}, dir: "a", flag: "a/y", path: "x", source: FromFlag},
		{name: "a linked working directory is left", world: []string{"root a/.atm", "dir a/b", "link c/b ../a/b", "root c/.atm"}, dir: "c/b", path: "a/.atm", source: FromAbove},
		{name: "writable by everybody", world: []string{"root a/.atm", "chmod a/.atm", "root .atm"}, dir: "a", path: ".atm", source: FromAbove,
			skipped: []string{"passed over a/.atm: writable by everybody"}},
		{name: "team writable by everybody", world: []string{"root a/.atm", "chmod a/.atm/main", "root .atm"}, dir: "a", path: ".atm", source: FromAbove,
			skipped: []string{"passed over a/.atm: its team main is writable by everybody"}},
		{name: "team with an odd name", world: []string{"root a/.atm", "dir a/.atm/\x1b[2J", "chmod a/.atm/\x1b[2J", "root .atm"}, dir: "a", path: ".atm", source: FromAbove,
			skipped: []string{"passed over a/.atm: its team \x1b[2J is writable by everybody"}},
		{name: "team behind a link", world: []string{"root a/.atm", "dir a/.atm/.x", "chmod a/.atm/.x", "link a/.atm/team .x", "root .atm"}, dir: "a", path: ".atm", source: FromAbove,
			skipped: []string{"passed over a/.atm: its team team is writable by everybody"}},
		{name: "what begins with a dot is no team", world: []string{"root a/.atm", "dir a/.atm/.x", "chmod a/.atm/.x"}, dir: "a", path: "a/.atm", source: FromAbove},
		{name: "writable by a group", world: []string{"root a/.atm", "group a/.atm/main"}, dir: "a", err: "no root found in a or above",
			skipped: []string{"passed over a/.atm: its team main is writable by its group and not accepted yet"}},
		{name: "a named one may be writable", world: []string{"root a", "chmod a", "chmod a/main"}, flag: "a", path: "a", source: FromFlag},
		{name: "none", world: []string{"dir a"}, dir: "a", err: "no root found in a or above"},
		{name: "nothing known", err: "no root found"},
		{name: "named, absent", world: []string{"root a/.atm"}, dir: "a", flag: "b", err: "no root at b, named by --root: it does not exist"},
		{name: "named, below a file", world: []string{"file a x"}, flag: "a/b", err: "no root at a/b, named by --root: it does not exist"},
		{name: "named, no FORMAT", world: []string{"dir b"}, env: "b", err: "no root at b, named by ATM_ROOT: it has no FORMAT file"},
		{name: "named, a file", world: []string{"file b x"}, env: "b", err: "no root at b, named by ATM_ROOT: it is not a directory"},
		{name: "named, a dangling link", world: []string{"link b c"}, env: "b", err: "no root at b, named by ATM_ROOT: it does not exist"},
		{name: "newer", world: []string{"root .atm", "file a/.atm/FORMAT 4\n"}, dir: "a", err: "the root a/.atm has format \"4\", but this atm knows only 1 to 3"},
		{name: "newer, named", world: []string{"file a/FORMAT 12"}, flag: "a", err: "the root a has format \"12\", but this atm knows only 1 to 3"},
		{name: "damaged", world: []string{"file .atm/FORMAT \x1b]0;\n"}, dir: ".", err: `the root .atm has format "\x1b]0;", but this atm knows only 1 to 3`},
		{name: "empty", world: []string{"file .atm/FORMAT "}, dir: ".", err: `the root .atm has format "", but this atm knows only 1 to 3`},
		{name: "distrust before format", world: []string{"file .atm/FORMAT 2", "chmod .atm"}, dir: ".", err: "no root found in . or above",
			skipped: []string{"passed over .atm: writable by everybody"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			top := testtree.Make(t, tt.world...)
			p := Place{UID: os.Getuid(), Home: filepath.Join(top, "home")}
			for in, to := range map[*string]*string{&tt.flag: &p.Flag, &tt.env: &p.Env, &tt.dir: &p.Dir} {
				if *in != "" {
					*to = filepath.Join(top, *in)
				}
			}
			f, skipped, err := Find(p)
			if diff := cmp.Diff(tt.skipped, testtree.TrimRoot(top, skipped)); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
			if tt.err != "" {
				got := strings.Replace(testtree.TrimRoot(top, []string{errText(err)})[0], top+" ", ". ", 1)
				if got != tt.err {
					t.Errorf("error %q, want %q", got, tt.err)
				}
				return
			}
			must(t, err)
			isAccepted := f.CheckAccepted(t.Context()) == nil
			if f.Path != filepath.Join(top, tt.path) || f.Source != tt.source || isAccepted {
				t.Errorf("%s (%s), accepted: %v; want %s (%s), by nobody", f.Path, f.Source, isAccepted, tt.path, tt.source)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A relative name starts at the physical working directory, as in the kernel.
func TestFindRelativeName(t *testing.T) {
	top := testtree.Make(t, "root a/x", "dir a/b", "link c/b ../a/b", "root c/x")
	f, _, err := Find(Place{Env: "../x", Dir: filepath.Join(top, "c", "b")})
	must(t, err)
	if want := filepath.Join(top, "a", "x"); f.Path != want {
		t.Errorf("found %s, want %s", f.Path, want)
	}
	if _, _, err := Find(Place{Env: "x"}); err == nil || errors.Is(err, ErrNoRoot) {
		t.Errorf("relative to nothing: %v", err)
	}
}

func TestInitDir(t *testing.T) {
	tests := []struct {
		name  string
		world []string
		dir   string
		flag  string
		here  bool
		want  string
		why   string
		err   string
	}{
		{name: "no repository", world: []string{"dir a"}, dir: "a", want: "a/.atm", why: "in this directory"},
		{name: "subdirectory of a repository", world: []string{"repo a/.git", "dir a/b/c"}, dir: "a/b/c", want: "a/.atm", why: "at the top of the main worktree"},
		{name: "linked worktree", world: []string{"repo app/.git", "repo app/.git/worktrees/wt", "file app/.git/worktrees/wt/commondir ../..", "file app/.git/worktrees/wt/gitdir ../../../../wt/.git", "file wt/.git gitdir: ../app/.git/worktrees/wt", "dir wt/sub"},
			dir: "wt/sub", want: "app/.atm", why: "at the top of the main worktree"},
		{name: "linked worktree of a bare repository", world: []string{"repo app.git", "repo app.git/worktrees/wt", "file app.git/worktrees/wt/commondir ../..", "file app.git/worktrees/wt/gitdir ../../../wt/.git", "file wt/.git gitdir: ../app.git/worktrees/wt", "dir wt/sub"},
			dir: "wt/sub", want: "wt/.atm", why: "at the top of this worktree, and goes with it: there is no main worktree"},
		{name: "another worktree of a bare repository has one", world: []string{"repo app.git", "repo app.git/worktrees/wt", "repo app.git/worktrees/one", "root one/.atm",
			"file app.git/worktrees/wt/commondir ../..", "file app.git/worktrees/wt/gitdir ../../../wt/.git", "file wt/.git gitdir: ../app.git/worktrees/wt",
			"file app.git/worktrees/one/commondir ../..", "file app.git/worktrees/one/gitdir ../../../one/.git", "file one/.git gitdir: ../app.git/worktrees/one"},
			dir: "wt", want: "one/.atm", why: "found in another worktree"},
		{name: "found above", world: []string{"root .atm", "repo a/.git", "dir a/b"}, dir: "a/b", want: ".atm", why: "found above"},
		{name: "found in the main worktree", world: []string{"root app/.atm", "repo app/.git", "repo app/.git/worktrees/wt", "file app/.git/worktrees/wt/commondir ../..", "file app/.git/worktrees/wt/gitdir ../../../../wt/.git", "file wt/.git gitdir: ../app/.git/worktrees/wt"},
			dir: "wt", want: "app/.atm", why: "found in the main worktree"},
		{name: "home does not count", world: []string{"root home/.atm", "dir home/a"}, dir: "home/a", want: "home/a/.atm", why: "in this directory"},
		{name: "above home does", world: []string{"root .atm", "root home/.atm", "dir home/a"}, dir: "home/a", want: ".atm", why: "found above"},
		{name: "in home itself", world: []string{"root home/.atm"}, dir: "home", want: "home/.atm", why: "in this directory"},
		{name: "here", world: []string{"root .atm", "repo a/.git", "dir a/b"}, dir: "a/b", here: true, want: "a/b/.atm", why: "in this directory"},
		{name: "here again", world: []string{"root a/.atm"}, dir: "a", here: true, want: "a/.atm", why: "in this directory"},
		{name: "named", world: []string{"root .atm", "dir a"}, dir: "a", flag: "x", want: "x", why: "named by --root"},
		{name: "named again", world: []string{"root x", "dir a"}, dir: "a", flag: "x", want: "x", why: "named by --root"},
		{name: "named through a link", world: []string{"dir a", "link b a"}, dir: "a", flag: "b/x", want: "a/x", why: "named by --root"},
		{name: "named file", world: []string{"file x y"}, flag: "x", err: "no root at x, named by --root: it is not a directory"},
		{name: "named, newer", world: []string{"file x/FORMAT 4"}, flag: "x", err: "the root x has format \"4\", but this atm knows only 1 to 3"},
		{name: "writable by a group", world: []string{"root a/.atm", "group a/.atm", "dir a/b"}, dir: "a/b", want: "a/.atm", why: "found above"},
		{name: "a directory without FORMAT", world: []string{"dir a/.atm"}, dir: "a", want: "a/.atm", why: "in this directory"},
		{name: "writable by everybody", world: []string{"root a/.atm", "chmod a/.atm"}, dir: "a", err: "a/.atm is not trusted: writable by everybody"},
		{name: "a link", world: []string{"root x", "link a/.atm ../x"}, dir: "a", err: "a/.atm is not trusted: it is a symbolic link, which counts only if you name it"},
		{name: "a file", world: []string{"file a/.atm x"}, dir: "a", err: "make a root: a/.atm is not a directory"},
		{name: "newer", world: []string{"file .atm/FORMAT 4", "dir a"}, dir: "a", err: "the root .atm has format \"4\", but this atm knows only 1 to 3"},
		{name: "nowhere", err: "make a root: there is no working directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			top := testtree.Make(t, tt.world...)
			p := Place{UID: os.Getuid(), Home: filepath.Join(top, "home")}
			if tt.dir != "" {
				p.Dir = filepath.Join(top, tt.dir)
			}
			if tt.flag != "" {
				p.Flag = filepath.Join(top, tt.flag)
			}
			f, err := InitDir(p, tt.here)
			if got := testtree.TrimRoot(top, []string{errText(err)})[0]; got != tt.err {
				t.Fatalf("error %q, want %q", got, tt.err)
			}
			if err != nil {
				return
			}
			if f.Path != filepath.Join(top, tt.want) || f.Source != tt.why {
				t.Errorf("%s %q\nwant %s %q", f.Path, f.Source, tt.want, tt.why)
			}
		})
	}
}

// A root of another user is skipped, whatever its modes.
func TestFindOwner(t *testing.T) {
	needRoot(t)
	top := testtree.Make(t, "root .atm", "root a/.atm", "root a/b/.atm", "repo a/b/c/.git")
	must(t, os.Chown(filepath.Join(top, "a", ".atm", "main"), 1001, 1001))
	must(t, os.Chown(filepath.Join(top, "a", "b", ".atm"), 1002, 1002))
	p := Place{Dir: filepath.Join(top, "a", "b", "c"), UID: 0}
	f, skipped, err := Find(p)
	must(t, err)
	if f.Path != filepath.Join(top, ".atm") {
		t.Errorf("found %s", f.Path)
	}
	want := []string{"passed over a/b/.atm: owned by uid 1002", "passed over a/.atm: its team main is owned by uid 1001"}
	if diff := cmp.Diff(want, testtree.TrimRoot(top, skipped)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// With no other, it is why there is none.
	must(t, os.RemoveAll(filepath.Join(top, ".atm")))
	_, _, err = Find(p)
	if !errors.Is(err, ErrNoRoot) || !errors.Is(err, ErrUntrusted) || !strings.HasSuffix(err.Error(), "a/b/.atm, which is not trusted: owned by uid 1002") {
		t.Error(err)
	}

	p.Dir = filepath.Join(top, "a")
	_, err = InitDir(p, true)
	if !errors.Is(err, ErrUntrusted) || !strings.HasSuffix(err.Error(), ": its team main is owned by uid 1001") {
		t.Errorf("init in a root with somebody else's team: %v", err)
	}
}

// Of concurrent calls one makes the root, nobody sees half of it, and no other file is left.
func TestMakeAtOnce(t *testing.T) {
	top := testtree.Make(t)
	path := filepath.Join(top, "a", ".atm")
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			did, err := Make(path)
			if has, missing := formatOf(path); err != nil || missing != nil || has == "" {
				t.Error(err, missing, has)
			}
			if did {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	names, err := os.ReadDir(filepath.Join(top, "a"))
	if made.Load() != 1 || err != nil || len(names) != 1 {
		t.Errorf("made %d times; %v, %v", made.Load(), names, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
}
