//go:build unix

package teams

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Who makes a worktree is killed at any instant, with its git or without: the
// next one makes it whole.
func TestWorkplaceKilled(t *testing.T) {
	if path := os.Getenv("ATM_TEST_WORKPLACE"); path != "" {
		makeWorkplace(t, path)
		return
	}
	t.Parallel()
	f := newGround(t, "bob")
	for i := range 150 {
		must(t, os.WriteFile(filepath.Join(f.repo, fmt.Sprintf("f%d.txt", i)), []byte(strings.Repeat("x", i)), 0o600))
	}
	git(t, f.repo, "add", ".")
	git(t, f.repo, "commit", "-q", "-m", "many")
	began := time.Now()
	w := f.placed(".", "made")
	whole := min(time.Since(began), 400*time.Millisecond)
	killed := 0
	for range 4 {
		git(t, f.repo, "worktree", "remove", w.Top)
		c := exec.Command(os.Args[0], "-test.run=^TestWorkplaceKilled$")
		c.Env = append(f.git.Env, "ATM_TEST_WORKPLACE="+f.repo, "GORACE=atexit_sleep_ms=0")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		must(t, c.Start())
		time.Sleep(rand.N(2 * whole)) // it also has to start
		whom := c.Process.Pid
		if rand.IntN(2) == 0 {
			whom = -whom // its git, too
		}
		syscall.Kill(whom, syscall.SIGKILL)
		if c.Wait() != nil {
			killed++
		}
		w, err := f.place(".")
		must(t, err)
		if b := branchOf(t, w.Top); b != "atm/bob" {
			t.Error(b)
		}
		if out := git(t, w.Top, "status", "--porcelain"); out != "" {
			t.Fatalf("it is not whole: %q", out)
		}
		f.placed(".", "")
	}
	t.Logf("killed %d of 4, within %s", killed, 2*whole)
}

// makeWorkplace is the process that is killed.
func makeWorkplace(t *testing.T, repo string) {
	root, err := Open(Found{Path: filepath.Join(repo, ".atm"), Source: FromFlag, Accepted: true}, nil)
	must(t, err)
	defer root.Close()
	team, err := root.Team("main")
	must(t, err)
	path, err := exec.LookPath("git")
	must(t, err)
	_, err = team.Workplace(t.Context(), Git{Path: path, Env: os.Environ()}, "bob", ".")
	must(t, err)
}
