package main

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	readmeID   = regexp.MustCompile(`\b[0-9a-f]{6}\b`)
	readmeAge  = regexp.MustCompile(`\b(just )?now\b|\b\d+[smhd] ago\b`)
	readmeTime = regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`)
	readmeGap  = regexp.MustCompile(` {2,}`)
)

// vague replaces what differs between runs.
func vague(line string) string {
	line = readmeAge.ReplaceAllString(line, "AGE")
	line = readmeTime.ReplaceAllString(line, "TIME")
	return readmeGap.ReplaceAllString(line, "  ")
}

// TestREADME runs the session of the README: each command must print what the README shows, but for ids, ages and
// times.
func TestREADME(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	must(t, err)
	for _, must := range []string{"make demo", "make test"} {
		if !strings.Contains(string(text), must) {
			t.Errorf("the README does not show %q", must)
		}
	}
	_, rest, ok := strings.Cut(string(text), "```\n$ ")
	session, _, ok2 := strings.Cut("$ "+rest, "\n```")
	if !ok || !ok2 {
		t.Fatal("the README has no session")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	app := filepath.Join(home, "app")
	for _, d := range []string{"info", "objects", "refs"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(app, ".git", d), 0o700))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(app, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600))
	must(t, err)
	ids := map[string]string{}
	for _, step := range strings.Split("\n"+session, "\n$ ")[1:] {
		command, printed, _ := strings.Cut(step, "\n")
		command = readmeID.ReplaceAllStringFunc(command, func(id string) string { return cmp.Or(ids[id], id) })
		c := exec.Command("sh", "-c", command)
		c.Dir = app
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GORACE=atexit_sleep_ms=0"}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		want := strings.Split(printed, "\n")
		got := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(out), home, "~"), "\n"), "\n")
		if len(got) != len(want) {
			t.Fatalf("%s printed\n%s\nand not\n%s", command, out, printed)
		}
		for i := range want {
			theirs, ours := readmeID.FindAllString(want[i], -1), readmeID.FindAllString(got[i], -1)
			for n := range theirs {
				if n < len(ours) {
					ids[theirs[n]] = ours[n]
				}
			}
			w := readmeID.ReplaceAllString(vague(want[i]), "ID")
			g := readmeID.ReplaceAllString(vague(got[i]), "ID")
			if w != g {
				t.Errorf("%s printed\n%s\nand not\n%s", command, got[i], want[i])
			}
		}
	}
}
