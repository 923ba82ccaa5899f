package teams

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// git runs git in dir, deaf to the configuration of whoever runs the test.
func git(t *testing.T, dir string, args ...string) string {
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

// repository makes one with a commit.
func repository(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	git(t, dir, "init", "-q")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
}

// What git makes is understood.
func TestWorktreeAtGit(t *testing.T) {
	top := world(t)
	app := filepath.Join(top, "app")
	repository(t, app)
	repository(t, filepath.Join(top, "lib"))
	git(t, app, "worktree", "add", "-q", "../wt")
	git(t, app, "worktree", "add", "-q", ".trees/inner")
	git(t, app, "submodule", "--quiet", "add", "../lib", "sub")
	git(t, app, "commit", "-q", "-m", "sub")
	git(t, app, "worktree", "add", "-q", "../wtsub")
	git(t, filepath.Join(top, "wtsub"), "submodule", "--quiet", "update", "--init")
	git(t, top, "clone", "-q", "--bare", "app", "app.git")
	git(t, filepath.Join(top, "app.git"), "worktree", "add", "-q", "../barewt", "-b", "barewt")
	git(t, top, "clone", "-q", "--bare", "app", "around/.bare")
	must(t, os.WriteFile(filepath.Join(top, "around", ".git"), []byte("gitdir: ./.bare\n"), 0o600))
	git(t, filepath.Join(top, "around"), "worktree", "add", "-q", "one", "-b", "one")
	git(t, top, "init", "-q", "--separate-git-dir", "app2.git", "apart")
	git(t, filepath.Join(top, "apart"), "commit", "-q", "--allow-empty", "-m", "first")
	git(t, filepath.Join(top, "apart"), "worktree", "add", "-q", "../apartwt")
	repository(t, filepath.Join(top, "gone"))
	git(t, filepath.Join(top, "gone"), "worktree", "add", "-q", "../orphan")
	must(t, os.Rename(filepath.Join(top, "gone"), filepath.Join(top, "moved")))
	must(t, os.Rename(filepath.Join(top, "wt"), filepath.Join(top, "wtmoved")))

	for _, tt := range []struct {
		what, dir, common, main string
	}{
		{"the main worktree", "app", "app/.git", "app"},
		{"a linked worktree, moved", "wtmoved", "app/.git", "app"},
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
			wt, ok := worktreeAt(filepath.Join(top, tt.dir))
			got := cut(top, []string{wt.top, wt.common, wt.main})
			if diff := cmp.Diff([]string{tt.dir, tt.common, tt.main}, got); diff != "" || !ok {
				t.Errorf("ok=%v (-want +got):\n%s", ok, diff)
			}
		})
	}
	if _, ok := worktreeAt(filepath.Join(top, "app.git")); ok {
		t.Error("a bare repository has no top")
	}
	if _, ok := worktreeAt(filepath.Join(top, "app", ".git")); ok {
		t.Error("the inside of .git is no top")
	}

	// Every worktree finds the root that any of them made.
	p := Place{Dir: filepath.Join(top, "wtsub", "sub"), UID: os.Getuid()}
	must(t, os.MkdirAll(filepath.Join(app, ".atm"), 0o700))
	must(t, os.WriteFile(filepath.Join(app, ".atm", "FORMAT"), []byte("1\n"), 0o600))
	f, _, err := Find(p)
	if err != nil || f.Path != filepath.Join(app, ".atm") || f.Source != FromMainWorktree {
		t.Errorf("from a submodule in a linked worktree: %+v, %v", f, err)
	}
}

// Relative paths, as git 2.48 writes them with worktree.useRelativePaths, and
// whatever else may stand in a .git.
func TestWorktreeAtHandMade(t *testing.T) {
	repo := []string{"dir app/.git/worktrees/wt", "file app/.git/worktrees/wt/commondir ../..\n", "dir wt"}
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
		{"commondir to itself", with("file wt/.git gitdir: x", "file wt/x/commondir ."), true, "wt/x", "wt"},
		{"commondir to the worktree", with("file wt/.git gitdir: x", "file wt/x/commondir .."), true, "wt", ""},
		{"commondir in a circle", with("file wt/.git gitdir: x", "file wt/x/commondir ../y", "file wt/y/commondir ../x"), true, "wt/y", ""},
		{"a circle of links", with("link wt/a b", "link wt/b a", "file wt/.git gitdir: a"), true, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := world(t, tt.world...)
			wt, ok := worktreeAt(filepath.Join(top, "wt"))
			got := cut(top, []string{wt.common, wt.main})
			if diff := cmp.Diff([]string{tt.common, tt.main}, got); diff != "" || ok != tt.ok {
				t.Errorf("ok=%v, want %v (-want +got):\n%s", ok, tt.ok, diff)
			}
			// However odd it is, the search goes on above it, and Exclude
			// writes nothing into what only looks like a repository.
			must(t, os.MkdirAll(filepath.Join(top, ".atm"), 0o700))
			must(t, os.WriteFile(filepath.Join(top, ".atm", "FORMAT"), []byte("1"), 0o600))
			f, _, err := Find(Place{Dir: filepath.Join(top, "wt"), UID: os.Getuid()})
			if err != nil || f.Path != filepath.Join(top, ".atm") {
				t.Errorf("found %+v, %v", f, err)
			}
			must(t, os.MkdirAll(filepath.Join(top, "wt", ".atm"), 0o700))
			if changed, file, err := Exclude(filepath.Join(top, "wt", ".atm")); changed || file != "" || err != nil {
				t.Errorf("Exclude: %v, %q, %v", changed, file, err)
			}
		})
	}
}

// A file of a gigabyte is not read.
func TestWorktreeAtHuge(t *testing.T) {
	top := world(t, "file wt/.git gitdir: x", "dir wt/x")
	must(t, os.Truncate(filepath.Join(top, "wt", ".git"), 1<<30))
	start := time.Now()
	if wt, ok := worktreeAt(filepath.Join(top, "wt")); !ok || wt.common != "" {
		t.Errorf("%+v, %v", wt, ok)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %v", d)
	}
}

func FuzzGitFile(f *testing.F) {
	for _, s := range []string{"gitdir: /a/.git/worktrees/b\n", "gitdir: ../a\r\n", "gitdir:", "gitdir: \n", "gitdir: a\x00b", "gitdir: a\nb\n", "../..\n", "\n", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path, ok := parseGitFile(data)
		if !ok {
			return
		}
		if path == "" || strings.ContainsRune(path, 0) || strings.HasSuffix(path, "\n") || strings.HasSuffix(path, "\r") {
			t.Errorf("%q is taken as %q", data, path)
		}
		if !bytes.HasPrefix(data, []byte("gitdir: "+path)) {
			t.Errorf("%q gives %q, which is not in it", data, path)
		}
		for _, end := range []string{"", "\n", "\r\n"} {
			if again, ok := parseGitFile([]byte("gitdir: " + path + end)); !ok || again != path {
				t.Errorf("written again, %q is read as %q", path, again)
			}
		}
	})
}
