package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/testtree"
)

func TestExclude(t *testing.T) {
	repo := "repo app/.git"
	for _, tt := range []struct {
		name  string
		world []string
		root  string
		file  string // "": none
		want  string // its content
		err   string
	}{
		{"no file", []string{repo}, "app/.atm", "app/.git/info/exclude", "/.atm/\n", ""},
		{"a subdirectory", []string{repo}, "app/a/b/.atm", "app/.git/info/exclude", "/a/b/.atm/\n", ""},
		{"another name", []string{repo}, "app/mail", "app/.git/info/exclude", "/mail/\n", ""},
		{"lines before", []string{repo, "file app/.git/info/exclude # git ls-files\n*.o\n"}, "app/.atm", "app/.git/info/exclude", "# git ls-files\n*.o\n/.atm/\n", ""},
		{"no line end", []string{repo, "file app/.git/info/exclude *.o"}, "app/.atm", "app/.git/info/exclude", "*.o\n/.atm/\n", ""},
		{"empty file", []string{repo, "file app/.git/info/exclude "}, "app/.atm", "app/.git/info/exclude", "/.atm/\n", ""},
		{"there", []string{repo, "file app/.git/info/exclude /.atm/\n*.o\n"}, "app/.atm", "app/.git/info/exclude", "/.atm/\n*.o\n", ""},
		{"there, the last line", []string{repo, "file app/.git/info/exclude *.o\n/.atm/"}, "app/.atm", "app/.git/info/exclude", "*.o\n/.atm/", ""},
		{"a part of a line is not there", []string{repo, "file app/.git/info/exclude #/.atm/\n/.atm/x\n"}, "app/.atm", "app/.git/info/exclude", "#/.atm/\n/.atm/x\n/.atm/\n", ""},
		{"outside of any repository", []string{repo}, "a/.atm", "", "", ""},
		{"a repository of its own", []string{repo, "repo app/mail/.git"}, "app/mail", "", "", ""},
		{"inside of .git", []string{repo}, "app/.git/.atm", "", "", ""},
		{"a linked worktree", []string{"repo app/.git", "repo app/.git/worktrees/wt", "file app/.git/worktrees/wt/gitdir ../../../../wt/.git", "file app/.git/worktrees/wt/commondir ../..", "file wt/.git gitdir: ../app/.git/worktrees/wt"},
			"wt/a/.atm", "app/.git/info/exclude", "/a/.atm/\n", ""},
		{"a stranger's .git file", []string{"dir b/info", "file app/.git gitdir: ../b"}, "app/.atm", "", "", ""},
		{"a linked file", []string{repo, "file x y", "dir app/.git/info", "link app/.git/info/exclude ../../../x"}, "app/.atm", "app/.git/info/exclude", "y", "left alone"},
		{"a dangling link", []string{repo, "dir app/.git/info", "link app/.git/info/exclude x"}, "app/.atm", "app/.git/info/exclude", "", "left alone"},
		{"a linked directory", []string{repo, "dir x", "link app/.git/info ../../x"}, "app/.atm", "app/.git/info/exclude", "", "escapes"},
		{"a directory", []string{repo, "dir app/.git/info/exclude"}, "app/.atm", "app/.git/info/exclude", "", "left alone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := testtree.Make(t, append(tt.world, "dir "+tt.root)...)
			root := filepath.Join(top, tt.root)
			file := ""
			if tt.file != "" {
				file = filepath.Join(top, tt.file)
			}
			err := Exclude(root)
			if (tt.err == "") != (err == nil) || !strings.Contains(fmt.Sprint(err), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if err == nil { // a second time changes nothing
				err = Exclude(root)
			}
			if (tt.err == "") != (err == nil) {
				t.Errorf("again: %v", err)
			}
			if file == "" {
				hasNoExclude(t, top)
			} else if data, _ := os.ReadFile(file); string(data) != tt.want {
				t.Errorf("the file is %q, want %q", data, tt.want)
			}
		})
	}
	if err := Exclude(filepath.Join(t.TempDir(), "gone")); err == nil {
		t.Error("excluded what is not there")
	}
}

// git understands the lines, and its status is clean.
func TestExcludeGit(t *testing.T) {
	top := testtree.Make(t)
	app := filepath.Join(top, "app")
	repository(t, app)
	gitIn(t, app, "worktree", "add", "-q", "../wt")
	names := []string{".atm", "a b/.atm", "#a/.atm", "!b/.atm", "é/.atm", "deep/er/.atm"}
	if os.PathSeparator == '/' {
		names = append(names, "a*/.atm", "b?/.atm", "c[d]/.atm", `e\f/.atm`, "g\nh/.atm", " /.atm ", "i/.atm\\", "j/.atm\r")
	}
	for _, dir := range []string{app, filepath.Join(top, "wt")} {
		for _, name := range names {
			root := filepath.Join(dir, name)
			must(t, os.MkdirAll(root, 0o700))
			must(t, os.WriteFile(filepath.Join(root, "FORMAT"), []byte("1\n"), 0o600))
			if err := Exclude(root); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		// The patterns hide nothing else.
		must(t, os.MkdirAll(filepath.Join(dir, "ax", ".atm"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "ax", ".atm", "seen"), nil, 0o600))
		if got := gitIn(t, dir, "status", "--porcelain", "-uall"); got != "?? ax/.atm/seen\n" {
			t.Errorf("git status in %s says:\n%s", dir, got)
		}
	}
	data, err := os.ReadFile(filepath.Join(app, ".git", "info", "exclude"))
	must(t, err)
	if n := strings.Count(string(data), "\n/.atm/\n"); n != 1 {
		t.Errorf("/.atm/ is there %d times", n)
	}
}
