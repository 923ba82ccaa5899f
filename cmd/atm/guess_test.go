package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestGuesses types the lines of testdata/guesses.txt, and counts: at least three in four just work,
// and 97 in a hundred work or name the right spelling.
func TestGuesses(t *testing.T) {
	home := t.TempDir()
	table, err1 := os.ReadFile(filepath.Join("..", "..", "testdata", "guesses.txt"))
	exe, err2 := os.Executable()
	bin, fixture := filepath.Join(home, "bin"), filepath.Join(home, "fixture")
	if err := errors.Join(err1, err2, os.Mkdir(bin, 0o700), os.Mkdir(fixture, 0o700), os.Symlink(exe, filepath.Join(bin, "atm"))); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "ATM_AGENT=alice", "PATH=" + bin + ":" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	typed := func(dir, line string) (string, int) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir, cmd.Env = dir, append(env, "ATM_ROOT="+filepath.Join(dir, ".atm"))
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	const id = "01890000-0000-7000-8000-000000"
	made, code := typed(fixture, "atm init alice bob carol && echo notes >notes.txt &&"+
		"atm send alice 'Shall I rebase?' --ack --as bob --id "+id+"9f3a1c && atm read &&"+
		"atm send alice 'It is done.' --as bob --id "+id+"77b0de && atm send bob Hello --id "+id+"5c5c5c")
	if code != 0 {
		t.Fatal(made)
	}
	works, named, all := 0, 0, 0
	for _, g := range parseGuesses(string(table)) {
		dir := filepath.Join(home, fmt.Sprint("try", all))
		all++
		if out, err := exec.Command("cp", "-a", fixture, dir).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
		out, code := typed(dir, g.line)
		answer, isUnderstood := strings.CutPrefix(g.want, "= ")
		switch {
		case g.want == "" && code == 0, isUnderstood && code != 0 && strings.Contains(out, answer):
			works++
		case isUnderstood:
			t.Errorf("%s: exit %d, does not answer %q\n%s", g.line, code, answer, out)
		case g.want == "":
			t.Errorf("%s: exit %d\n%s", g.line, code, out)
		case g.want != "?" && code != 0 && strings.Contains(out, g.want):
			named++
		case g.want != "?":
			t.Errorf("%s: exit %d, does not name %q\n%s", g.line, code, g.want, out)
		}
	}
	t.Logf("%d guesses: %d work, %d more name the right spelling", all, works, named)
	if all < 170 || works*100 < all*75 || (works+named)*100 < all*97 {
		t.Errorf("of %d guesses %d work and %d more name the right spelling: too few", all, works, named)
	}
}

type guess struct{ line, want string }

// parseGuesses are the lines of the table.
func parseGuesses(table string) (out []guess) {
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		if len(out) > 0 && strings.Count(out[len(out)-1].line, `"`)%2 == 1 {
			out[len(out)-1].line += "\n" + line
		} else if line != "" && line[0] != '#' {
			typed, want, _ := strings.Cut(line, "\t")
			out = append(out, guess{typed, strings.TrimSpace(want)})
		}
	}
	return out
}
