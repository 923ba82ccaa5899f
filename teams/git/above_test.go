package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What Above and ExcludeFile say is what git itself says.
func TestAbove(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(at string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", at, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	main, tree := filepath.Join(dir, "main"), filepath.Join(dir, "main", "in", "tree")
	if err := os.MkdirAll(filepath.Join(main, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	git(main, "init", "-q", ".")
	git(main, "commit", "-q", "--allow-empty", "-m", "x")
	git(main, "worktree", "add", "-q", tree)

	all := Above(filepath.Join(main, "sub"))
	if len(all) != 1 || all[0].Top != main || all[0].IsLinked() || all[0].GitDir != filepath.Join(main, ".git") {
		t.Errorf("the main worktree: %+v", all)
	}
	file, line := all[0].ExcludeFile(filepath.Join(main, "sub", "a*[b"))
	if file != filepath.Join(main, ".git", "info", "exclude") || line != `/sub/a\*\[b` {
		t.Errorf("%s: %s", file, line)
	}
	if file, line := all[0].ExcludeFile(dir); file != "" || line != "" {
		t.Errorf("outside: %s: %s", file, line)
	}
	all = Above(tree)
	if len(all) != 2 || all[0].Top != tree || !all[0].IsLinked() || all[0].GitDir != filepath.Join(main, ".git", "worktrees", "tree") || all[1].Top != main {
		t.Errorf("the linked worktree: %+v", all)
	}
	if file, line := all[0].ExcludeFile(filepath.Join(tree, "x")); file != filepath.Join(main, ".git", "info", "exclude") || line != "/x" {
		t.Errorf("the linked worktree: %s: %s", file, line)
	}
	if all := Above(dir); len(all) != 0 {
		t.Errorf("no worktree: %+v", all)
	}
	// A .git that leads to no repository is one that nothing is written to.
	stray := filepath.Join(dir, "stray")
	if err := os.MkdirAll(filepath.Join(dir, "elsewhere"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(stray, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stray, ".git"), []byte("gitdir: ../elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all := Above(stray); len(all) != 1 {
		t.Errorf("stray: %+v", all)
	} else if file, _ := all[0].ExcludeFile(filepath.Join(stray, "x")); file != "" {
		t.Errorf("stray: %s", file)
	}
}
