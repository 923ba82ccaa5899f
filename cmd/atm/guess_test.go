package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestGuesses runs the lines of testdata/guesses.txt: at least three in four must work, and 97 in a hundred work or
// name the right spelling.
func TestGuesses(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	// A thousand copies: in memory where possible.
	if dir, err := os.MkdirTemp("/dev/shm", "atm-guesses-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		home = dir
	}
	table, err := os.ReadFile(filepath.Join("..", "..", "testdata", "guesses.txt"))
	fixture := filepath.Join(home, "fixture")
	must(t, cmp.Or(err, os.Mkdir(fixture, 0o700)))
	env := []string{"HOME=" + home, "ATM_AGENT=alice", "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	typed := func(dir, line string) (string, int) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
	// A line that must fail changes nothing: these lines share a directory.
	failing := filepath.Join(home, "failing")
	copied := func(dir string) {
		if out, err := exec.Command("cp", "-a", fixture, dir).CombinedOutput(); err != nil {
			t.Error(string(out))
		}
	}
	copied(failing)
	var works, named, worksBeyond, namedBeyond atomic.Int32
	counted, _, _ := strings.Cut(string(table), "# Beyond:")
	guesses, all := parseGuesses(string(table)), len(parseGuesses(counted))
	t.Run("line", func(t *testing.T) {
		for i, g := range guesses {
			if g.want == "?" {
				continue // whatever it does
			}
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				works, named := &works, &named
				if i >= all {
					works, named = &worksBeyond, &namedBeyond
				}
				answer, isUnderstood := strings.CutPrefix(g.want, "= ")
				dir := failing
				if g.want == "" || isUnderstood {
					dir = filepath.Join(home, fmt.Sprint("try", i))
					copied(dir)
					defer os.RemoveAll(dir)
				}
				out, code := typed(dir, g.line)
				switch {
				case g.want == "" && code == 0, isUnderstood && code != 0 && strings.Contains(out, answer):
					works.Add(1)
				case isUnderstood:
					t.Errorf("%s: exit %d, does not answer %q\n%s", g.line, code, answer, out)
				case g.want == "":
					t.Errorf("%s: exit %d\n%s", g.line, code, out)
				case code != 0 && strings.Contains(out, g.want):
					named.Add(1)
				default:
					t.Errorf("%s: exit %d, does not name %q\n%s", g.line, code, g.want, out)
				}
			})
		}
	})
	work, name := int(works.Load()), int(named.Load())
	t.Logf("%d guesses: %d work, %d more name the right spelling", all, work, name)
	t.Logf("beyond, %d: %d work, %d more name it", len(guesses)-all, worksBeyond.Load(), namedBeyond.Load())
	if all < 170 || work*100 < all*75 || (work+name)*100 < all*97 {
		t.Errorf("of %d guesses %d work and %d more name the right spelling: too few", all, work, name)
	}
}

type guess struct{ line, want string }

// parseGuesses parses the table.
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
