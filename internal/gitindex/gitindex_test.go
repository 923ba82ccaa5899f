package gitindex

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// git runs the real one, away from the user's configuration.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "HOME="+dir,
		"GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.com", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, n := range names {
		path := filepath.Join(dir, filepath.FromSlash(n))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func tracked(t *testing.T, gitDir, path string) bool {
	t.Helper()
	ok, err := Tracked(gitDir, path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return ok
}

// agree compares with what git itself says.
func agree(t *testing.T, top, gitDir string, untracked ...string) {
	t.Helper()
	names := strings.Split(strings.TrimRight(git(t, top, "ls-files", "-z"), "\x00"), "\x00")
	for _, n := range names {
		if n != "" && !tracked(t, gitDir, n) {
			t.Errorf("%q is tracked", n)
		}
	}
	for _, n := range untracked {
		if !slices.Contains(names, n) && tracked(t, gitDir, n) {
			t.Errorf("%q is not tracked", n)
		}
	}
}

// Against git, in each version and object format.
func TestAgainstGit(t *testing.T) {
	long := strings.Repeat("long/", 820) + "name" // over what the flags can say
	names := []string{"a", "ab", "a-b", "dir/a", "dir/settings.local.json", "dir2/x", "ünï/çode", "with space", ".claude/settings.json"}
	for i := range 300 {
		names = append(names, fmt.Sprintf("many/%03d/file", i))
	}
	for _, format := range []string{"sha1", "sha256"} {
		for version := 2; version <= 4; version++ {
			t.Run(fmt.Sprint(format, version), func(t *testing.T) {
				top := t.TempDir()
				git(t, top, "init", "-q", "--object-format="+format, ".")
				gitDir := filepath.Join(top, ".git")
				if tracked(t, gitDir, "a") {
					t.Error("an empty repository tracks nothing")
				}
				write(t, top, names...)
				git(t, top, "add", ".")
				write(t, top, "later", ".claude/settings.local.json")
				git(t, top, "add", "-N", "later")
				// A long name, without a file: the path is over what systems take.
				blob := strings.TrimSpace(git(t, top, "hash-object", "-w", "a"))
				git(t, top, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+long)
				git(t, top, "update-index", "--index-version", fmt.Sprint(version))
				if version == 2 { // an intent to add needs version 3
					git(t, top, "rm", "-q", "--cached", "later")
				}
				data, err := os.ReadFile(filepath.Join(gitDir, "index"))
				if err != nil {
					t.Fatal(err)
				}
				if int(data[7]) != version {
					t.Fatalf("git wrote version %d", data[7])
				}
				agree(t, top, gitDir, "b", "dir", "dir/", "dir/settings", ".claude/settings.local.json", "many/000", "later", "", "a/b")
				if !tracked(t, gitDir, long) {
					t.Error("a long name is not found")
				}
			})
		}
	}
}

func TestShapesOfRepositories(t *testing.T) {
	t.Run("linked worktree", func(t *testing.T) {
		top := t.TempDir()
		git(t, top, "init", "-q", ".")
		write(t, top, "one")
		git(t, top, "add", ".")
		git(t, top, "commit", "-qm", "x")
		tree := filepath.Join(t.TempDir(), "tree")
		git(t, top, "worktree", "add", "-q", tree)
		write(t, tree, "two")
		git(t, tree, "add", ".")
		gitDir := strings.TrimSpace(git(t, tree, "rev-parse", "--absolute-git-dir"))
		agree(t, tree, gitDir, "three")
		if tracked(t, filepath.Join(top, ".git"), "two") {
			t.Error("the main worktree does not track it")
		}
	})
	t.Run("split index", func(t *testing.T) {
		top := t.TempDir()
		git(t, top, "init", "-q", ".")
		write(t, top, "one", "two", "three")
		git(t, top, "add", ".")
		git(t, top, "update-index", "--split-index")
		write(t, top, "four", "one") // one is replaced, four is new
		if err := os.WriteFile(filepath.Join(top, "one"), []byte("changed"), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, top, "add", ".")
		agree(t, top, filepath.Join(top, ".git"), "five")
	})
	t.Run("sparse index", func(t *testing.T) {
		top := t.TempDir()
		git(t, top, "init", "-q", ".")
		write(t, top, "one", "in/file", "out/deep/file", ".claude/x")
		git(t, top, "add", ".")
		git(t, top, "commit", "-qm", "x")
		git(t, top, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
		gitDir := filepath.Join(top, ".git")
		agree(t, top, gitDir, "two", "in/other")
		if !tracked(t, gitDir, "out/deep/other") {
			t.Error("below a directory that is not spelled out nothing is known, so it counts")
		}
	})
	t.Run("conflict", func(t *testing.T) {
		top := t.TempDir()
		git(t, top, "init", "-q", ".")
		write(t, top, "f")
		blob := strings.TrimSpace(git(t, top, "hash-object", "-w", "f"))
		git(t, top, "update-index", "--add", "--cacheinfo", "100644,"+blob+",z")
		in := fmt.Sprintf("100644 %[1]s 1\tf\n100644 %[1]s 2\tf\n100644 %[1]s 3\tf\n", blob)
		if err := os.WriteFile(filepath.Join(top, "in"), []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", "git update-index --index-info < in")
		cmd.Dir = top
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		agree(t, top, filepath.Join(top, ".git"), "in")
	})
	t.Run("no checksum", func(t *testing.T) {
		top := t.TempDir()
		git(t, top, "init", "-q", ".")
		write(t, top, "f")
		git(t, top, "-c", "index.skipHash=true", "add", ".")
		agree(t, top, filepath.Join(top, ".git"), "g")
	})
}

func TestNoIndexThatGitWrote(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "text": "not an index at all", "cut": "DIRC\x00\x00\x00\x02\x00\x00\x00\x05",
		"newer": "DIRC\x00\x00\x00\x05\x00\x00\x00\x00" + strings.Repeat("\x00", 20),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "index"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Tracked(dir, "x"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzIndex(f *testing.F) {
	for _, version := range []byte{2, 3, 4} {
		f.Add(append([]byte("DIRC\x00\x00\x00"), append([]byte{version, 0, 0, 0, 0}, make([]byte, 20)...)...))
	}
	entry := append(make([]byte, 60), 0, 1, 'a', 0)
	f.Add(slices.Concat([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"), entry, make([]byte, 8-len(entry)%8), make([]byte, 20)))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = each(data, func(string) bool { return true })
	})
}
