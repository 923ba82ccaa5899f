package git

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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

// gitIn runs git in dir without the configuration of the user who runs the test.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// repository makes a repository with one commit.
func repository(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	gitIn(t, dir, "init", "-q")
	gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
}

// Every layout that git makes is understood.
func TestAtGit(t *testing.T) {
	top := testtree.Make(t)
	app := filepath.Join(top, "app")
	repository(t, app)
	repository(t, filepath.Join(top, "lib"))
	gitIn(t, app, "worktree", "add", "-q", "../wt")
	gitIn(t, app, "worktree", "add", "-q", ".trees/inner")
	gitIn(t, app, "submodule", "--quiet", "add", "../lib", "sub")
	gitIn(t, app, "commit", "-q", "-m", "sub")
	gitIn(t, app, "worktree", "add", "-q", "../wtsub")
	gitIn(t, filepath.Join(top, "wtsub"), "submodule", "--quiet", "update", "--init")
	gitIn(t, top, "clone", "-q", "--bare", "app", "app.git")
	gitIn(t, filepath.Join(top, "app.git"), "worktree", "add", "-q", "../barewt", "-b", "barewt")
	gitIn(t, top, "clone", "-q", "--bare", "app", "around/.bare")
	must(t, os.WriteFile(filepath.Join(top, "around", ".git"), []byte("gitdir: ./.bare\n"), 0o600))
	gitIn(t, filepath.Join(top, "around"), "worktree", "add", "-q", "one", "-b", "one")
	gitIn(t, top, "init", "-q", "--separate-git-dir", "app2.git", "apart")
	gitIn(t, filepath.Join(top, "apart"), "commit", "-q", "--allow-empty", "-m", "first")
	gitIn(t, filepath.Join(top, "apart"), "worktree", "add", "-q", "../apartwt")
	repository(t, filepath.Join(top, "gone"))
	gitIn(t, filepath.Join(top, "gone"), "worktree", "add", "-q", "../orphan")
	must(t, os.Rename(filepath.Join(top, "gone"), filepath.Join(top, "moved")))
	must(t, os.Rename(filepath.Join(top, "wt"), filepath.Join(top, "wtmoved")))
	gitIn(t, app, "worktree", "add", "-q", "-b", "wt2", "../wt2")
	must(t, os.Rename(filepath.Join(top, "wt2"), filepath.Join(top, "wtrepaired")))
	gitIn(t, filepath.Join(top, "wtrepaired"), "worktree", "repair")
	must(t, os.Mkdir(filepath.Join(top, "unpacked"), 0o700))
	must(t, os.WriteFile(filepath.Join(top, "unpacked", ".git"), []byte("gitdir: "+filepath.Join(top, "app/.git/worktrees/inner")), 0o600))

	for _, tt := range []struct {
		what, dir, common, main string
	}{
		{"the main worktree", "app", "app/.git", "app"},
		{"odd: a linked worktree, moved", "wtmoved", "", ""}, // until git worktree repair
		{"a linked worktree, moved and repaired", "wtrepaired", "app/.git", "app"},
		{"odd: a .git file that came with an archive", "unpacked", "", ""},
		{"a linked worktree inside of the main one", "app/.trees/inner", "app/.git", "app"},
		{"a submodule", "app/sub", "app/.git/modules/sub", "app/sub"},
		{"a submodule in a linked worktree", "wtsub/sub", "app/.git/worktrees/wtsub/modules/sub", "wtsub/sub"},
		{"a worktree of a bare repository", "barewt", "app.git", ""},
		{"a worktree beside a bare repository", "around/one", "around/.bare", "around"},
		{"a separate git directory", "apart", "app2.git", "apart"},
		{"a worktree of a separate git directory", "apartwt", "app2.git", ""},
		{"a worktree whose repository was moved away", "orphan", "", ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			wt, ok := At(filepath.Join(top, tt.dir))
			got := testtree.TrimRoot(top, []string{wt.Top, wt.Common, wt.Main})
			if isOdd := strings.HasPrefix(tt.what, "odd: "); isOdd != (wt.Strange != nil) {
				t.Errorf("strange: %v", wt.Strange)
			} else if says := gitSays(t, wt.Top); !isOdd && says != wt.Top+" "+wt.Common {
				t.Errorf("git says %q, atm %q", says, wt.Top+" "+wt.Common)
			}
			if diff := cmp.Diff([]string{tt.dir, tt.common, tt.main}, got); diff != "" || !ok {
				t.Errorf("ok=%v (-want +got):\n%s", ok, diff)
			}
		})
	}
	if _, ok := At(filepath.Join(top, "app.git")); ok {
		t.Error("a bare repository has no top")
	}
	if _, ok := At(filepath.Join(top, "app", ".git")); ok {
		t.Error("the inside of .git is no top")
	}
}

// Relative paths, as git 2.48 writes them with worktree.useRelativePaths, and malformed .git files: git says the same of
// each, or the repository is strange.
func TestAtHandMade(t *testing.T) {
	world := []string{"repo app/.git", "repo app/.git/worktrees/wt", "file app/.git/worktrees/wt/commondir ../..\n", "file app/.git/worktrees/wt/gitdir ../../../../wt/.git\n",
		"file wt/a x"}
	const wt = "file wt/.git gitdir: ../app/.git/worktrees/wt"
	x := []string{"repo wt/x", "file wt/.git gitdir: x", "file wt/x/gitdir ../.git"}
	none, known := []string{"", "", ""}, []string{"wt", "app/.git", "app"}
	unread, strange := []string{"wt", "", ""}, []string{"wt", "", "", "strange"}
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string // Top, Common, Main
	}{
		{"relative", []string{wt + "\n"}, known},
		{"through a link, .. after it", []string{"dir x/y", "link wt/l ../x/y", "file wt/.git gitdir: l/../../app/.git/worktrees/wt"}, known},
		{"no line end", []string{wt}, known},
		{"carriage return", []string{wt + "\r\n\r\n"}, known},
		{"6,000 line ends", []string{wt + strings.Repeat("\n", 6000)}, known},
		{"NUL", []string{wt + "\x00x\n"}, known},
		{"the longest path", []string{"file wt/.git gitdir: " + strings.Repeat("../wt/", 600) + "../app/.git/worktrees/wt"}, known},
		{"a linked .git directory", []string{"link wt/.git ../app/.git"}, []string{"wt", "app/.git", "wt"}},
		{"a linked .git file", []string{"file g gitdir: nowhere", "link wt/.git ../g", "file g gitdir: ../app/.git/worktrees/wt"}, known},
		{"a .git file through two links", []string{"link wt/g ../g", "link wt/.git g", "file g gitdir: ../app/.git/worktrees/wt"}, known},
		{"a .git directory that is a worktree's", []string{"link wt/.git ../app/.git/worktrees/wt"}, known},
		{"a link to itself", []string{"link wt/.git .git"}, none},
		{"a dangling link", []string{"link wt/.git gone"}, none},
		{"nothing", nil, none},
		{"an empty directory", []string{"dir wt/.git"}, none},
		{"no refs", []string{"dir wt/.git/objects", "file wt/.git/HEAD ref: refs/heads/main"}, none},
		{"a lock that was left", []string{"repo wt/.git", "file wt/.git/index.lock "}, []string{"wt", "wt/.git", "wt"}},
		{"empty", []string{"file wt/.git "}, unread},
		{"no path", []string{"file wt/.git gitdir: \n"}, unread},
		{"no space", []string{"file wt/.git gitdir:../app/.git/worktrees/wt"}, unread},
		{"second line", []string{wt + "\ngitdir: x"}, unread},
		{"to itself", []string{"file wt/.git gitdir: .git"}, unread},
		{"to a .git file", []string{"file wt/g gitdir: ../app/.git/worktrees/wt", "file wt/.git gitdir: g"}, unread},
		{"below a file", []string{"file wt/.git gitdir: a/y"}, unread},
		{"to nowhere", []string{"file wt/.git gitdir: ../gone"}, unread},
		{"to no repository", []string{"file wt/.git gitdir: ."}, unread},
		{"a circle of links", []string{"link wt/a2 b", "link wt/b a2", "file wt/.git gitdir: a2"}, unread},
		{"larger than a megabyte", []string{wt + strings.Repeat("\n", 1<<20)}, unread},
		{"commondir is empty", []string{wt, "file app/.git/worktrees/wt/commondir \n"}, strange},
		{"commondir to nowhere", []string{wt, "file app/.git/worktrees/wt/commondir ../../x"}, strange},
		{"commondir is a directory", append(x, "dir wt/x/commondir"), strange},
		{"commondir to itself", append(x, "file wt/x/commondir ."), []string{"wt", "wt/x", "wt"}},
		{"commondir to no repository", append(x, "file wt/x/commondir .."), unread},
		{"commondir in a circle", append(x, "file wt/x/commondir ../y", "repo wt/y", "file wt/y/commondir ../x"), strange},
		{"no back link", []string{"repo wt/.git", "file wt/.git/commondir ../../app/.git"}, strange},
		{"a back link of the stranger's own", []string{"repo wt/.git", "file wt/.git/commondir ../../app/.git", "file wt/.git/gitdir ../.git"}, strange},
		{"a back link to elsewhere", []string{wt, "repo wt2/.git", "file app/.git/worktrees/wt/gitdir ../../../../wt2/.git"}, strange},
		{"a back link to another name", []string{wt, "file app/.git/worktrees/wt/gitdir ../../../../wt/git"}, strange},
		{"in worktrees elsewhere", []string{"repo o/worktrees/wt", "file o/worktrees/wt/commondir ../../../app/.git", "file o/worktrees/wt/gitdir ../../../wt/.git", "file wt/.git gitdir: ../o/worktrees/wt"}, strange},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := testtree.Make(t, slices.Concat(world, tt.lines)...)
			dir := filepath.Join(top, "wt")
			c, ok := At(dir)
			got := testtree.TrimRoot(top, []string{c.Top, c.Common, c.Main})
			if !ok {
				got = none
			}
			if c.Strange != nil {
				got = append(got, "strange")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if says := gitSays(t, dir); c.Strange == nil && says != c.Top+" "+c.Common {
				t.Errorf("git says %q, atm %q", says, c.Top+" "+c.Common)
			}
			// Exclude writes nothing into a directory that only looks like a repository.
			must(t, os.MkdirAll(filepath.Join(dir, ".atm"), 0o700))
			if err := Exclude(filepath.Join(dir, ".atm")); err != nil {
				t.Errorf("Exclude: %v", err)
			}
			if c.Common == "" {
				hasNoExclude(t, top)
			}
		})
	}
}

// gitSays returns what git says of a directory: its top and the repository. Where git finds none there, both are empty;
// where it does not get beyond a .git file, only the repository.
func gitSays(t *testing.T, dir string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	out, err := run(t.Context(), environ(t), dir, "rev-parse", "--show-toplevel", "--path-format=absolute", "--git-common-dir")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	switch {
	case err == nil:
		return strings.Join(lines, " ")
	case strings.Contains(err.Error(), "(or any of the parent directories)"):
		return " "
	}
	return dir + " "
}

// A file of a gigabyte is not read.
func TestAtHuge(t *testing.T) {
	top := testtree.Make(t, "file wt/.git gitdir: x", "dir wt/x")
	must(t, os.Truncate(filepath.Join(top, "wt", ".git"), 1<<30))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if wt, ok := At(filepath.Join(top, "wt")); !ok || wt.Common != "" {
		t.Errorf("%+v, %v", wt, ok)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 64<<20 {
		t.Errorf("took %d bytes of memory", after.TotalAlloc-before.TotalAlloc)
	}
}

func hasNoExclude(t *testing.T, top string) {
	t.Helper()
	filepath.WalkDir(top, func(path string, _ fs.DirEntry, _ error) error {
		if filepath.Base(path) == "exclude" {
			t.Errorf("Exclude wrote %s", path)
		}
		return nil
	})
}
