package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	readmeID   = regexp.MustCompile(`\b[0-9a-f]{6}\b`)
	readmeAge  = regexp.MustCompile(`\bnow\b|\b\d+[smhd] ago\b`)
	readmeTime = regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`)
	readmeGap  = regexp.MustCompile(` {2,}`)
)

// vague replaces what differs from run to run.
func vague(line string) string {
	line = readmeAge.ReplaceAllString(line, "AGE")
	line = readmeTime.ReplaceAllString(line, "TIME")
	return readmeGap.ReplaceAllString(line, "  ")
}

// TestREADME plays the session of the README: each command, line by line, must
// print what stands there, but for ids, ages and times.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
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
	home := t.TempDir()
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(home, "app")
	if err := os.MkdirAll(filepath.Join(app, ".git", "info"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(app, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"objects", "refs"} {
		if err := os.Mkdir(filepath.Join(app, ".git", d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]string{}
	lines := strings.Split(session, "\n")
	for len(lines) > 0 {
		command, ok := strings.CutPrefix(lines[0], "$ ")
		if !ok {
			t.Fatalf("no command: %q", lines[0])
		}
		lines = lines[1:]
		var want []string
		for len(lines) > 0 && !strings.HasPrefix(lines[0], "$ ") {
			want = append(want, lines[0])
			lines = lines[1:]
		}
		command = readmeID.ReplaceAllStringFunc(command, func(id string) string {
			if real, ok := ids[id]; ok {
				return real
			}
			return id
		})
		c := exec.Command("sh", "-c", command)
		c.Dir = app
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GORACE=atexit_sleep_ms=0"}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		var got []string
		if len(out) > 0 {
			got = strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(out), home, "~"), "\n"), "\n")
		}
		if len(got) != len(want) {
			t.Fatalf("%s printed\n%s\nand not\n%s", command, strings.Join(got, "\n"), strings.Join(want, "\n"))
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
