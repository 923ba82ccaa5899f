package git

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
		{"a linked worktree, moved", "wtmoved", "", ""}, // until git worktree repair
		{"a linked worktree, moved and repaired", "wtrepaired", "app/.git", "app"},
		{"a .git file that came with an archive", "unpacked", "", ""},
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

// Relative paths, as git 2.48 writes them with worktree.useRelativePaths, and malformed .git files.
func TestAtHandMade(t *testing.T) {
	repo := []string{"dir app/.git/worktrees/wt", "file app/.git/worktrees/wt/commondir ../..\n", "file app/.git/worktrees/wt/gitdir ../../../../wt/.git\n", "dir wt"}
	with := func(lines ...string) []string { return append(repo[:len(repo):len(repo)], lines...) }
	for _, tt := range []struct {
		name         string
		world        []string
		ok           bool
		common, main string
	}{
		{"relative", with("file wt/.git gitdir: ../app/.git/worktrees/wt\n"), true, "app/.git", "app"},
		{"through a link, .. after it", with("dir x/y", "link wt/l ../x/y", "file wt/.git gitdir: l/../../app/.git/worktrees/wt"), true, "app/.git", "app"},
		{"no line end", with("file wt/.git gitdir: ../app/.git/worktrees/wt"), true, "app/.git", "app"},
		{"carriage return", with("file wt/.git gitdir: ../app/.git/worktrees/wt\r\n\r\n"), true, "app/.git", "app"},
		{"a linked .git directory", with("link wt/.git ../app/.git"), true, "app/.git", "wt"},
		{"a linked .git file", with("file g gitdir: app/.git/worktrees/wt", "link wt/.git ../g"), true, "", ""},
		{"a link to itself", with("link wt/.git .git"), true, "", ""},
		{"nothing", repo, false, "", ""},
		{"empty", with("file wt/.git "), true, "", ""},
		{"no path", with("file wt/.git gitdir: \n"), true, "", ""},
		{"no space", with("file wt/.git gitdir:../app/.git/worktrees/wt"), true, "", ""},
		{"second line", with("file wt/.git gitdir: ../app/.git/worktrees/wt\ngitdir: x"), true, "", ""},
		{"NUL", with("file wt/.git gitdir: ../app/.git/worktrees/wt\x00"), true, "", ""},
		{"to itself", with("file wt/.git gitdir: .git"), true, "", ""},
		{"to a file", with("file wt/x y", "file wt/.git gitdir: x"), true, "", ""},
		{"below a file", with("file wt/x y", "file wt/.git gitdir: x/y"), true, "", ""},
		{"to nowhere", with("file wt/.git gitdir: ../gone"), true, "", ""},
		{"longer than any path", with("file wt/.git gitdir: " + strings.Repeat("../wt/", 600)), true, "wt", "wt"},
		{"larger than 4 KiB", with("file wt/.git gitdir: " + strings.Repeat("../wt/", 700)), true, "", ""},
		{"commondir is empty", with("file wt/.git gitdir: ../app/.git/worktrees/wt", "file app/.git/worktrees/wt/commondir \n"), true, "", ""},
		{"commondir to nowhere", with("file wt/.git gitdir: ../app/.git/worktrees/wt", "file app/.git/worktrees/wt/commondir ../../x"), true, "", ""},
		{"commondir is a directory", with("file wt/.git gitdir: x", "dir wt/x/commondir"), true, "", ""},
		{"commondir to itself", with("file wt/.git gitdir: x", "file wt/x/gitdir ../.git", "file wt/x/commondir ."), true, "wt/x", "wt"},
		{"commondir to the worktree", with("file wt/.git gitdir: x", "file wt/x/gitdir ../.git", "file wt/x/commondir .."), true, "wt", ""},
		{"commondir in a circle", with("file wt/.git gitdir: x", "file wt/x/gitdir ../.git", "file wt/x/commondir ../y", "file wt/y/commondir ../x"), true, "wt/y", ""},
		{"no back link", with("file wt/.git gitdir: x", "file wt/x/commondir ../../app/.git"), true, "", ""},
		{"a back link to elsewhere", with("file wt2/.git gitdir: x", "file wt/.git gitdir: x", "file wt/x/commondir ../../app/.git", "file wt/x/gitdir ../../wt2/.git"), true, "", ""},
		{"a circle of links", with("link wt/a b", "link wt/b a", "file wt/.git gitdir: a"), true, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := testtree.Make(t, tt.world...)
			wt, ok := At(filepath.Join(top, "wt"))
			got := testtree.TrimRoot(top, []string{wt.Common, wt.Main})
			if diff := cmp.Diff([]string{tt.common, tt.main}, got); diff != "" || ok != tt.ok {
				t.Errorf("ok=%v, want %v (-want +got):\n%s", ok, tt.ok, diff)
			}
			// Exclude writes nothing into a directory that only looks like a repository.
			must(t, os.MkdirAll(filepath.Join(top, "wt", ".atm"), 0o700))
			if err := Exclude(filepath.Join(top, "wt", ".atm")); err != nil {
				t.Errorf("Exclude: %v", err)
			}
			hasNoExclude(t, top)
		})
	}
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
