//go:build unix

package crashtest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// built is where the command was built: once, for all tests. ATM_BINARY names
// one that is there, such as one built with -race.
var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

func binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.path = os.Getenv("ATM_BINARY"); built.path != "" {
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "crashtest"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "atm")
		build := exec.Command("go", "build", "-o", built.dir, "../../cmd/...")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %v\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// A world is a root that processes work on, and what they said.
type world struct {
	t    testing.TB
	atm  string
	home string
	root string
	cuts bool // the power may be cut: who drops a file syncs it

	*ledger
}

// newWorld makes a root with these members below dir.
func newWorld(t testing.TB, dir string, members ...string) *world {
	t.Helper()
	w := &world{t: t, atm: binary(t), home: t.TempDir(), root: filepath.Join(dir, "root"), ledger: newLedger()}
	w.must(append([]string{"init"}, members...)...)
	return w
}

func (w *world) team() string { return filepath.Join(w.root, "main") }

// A call is one process.
type call struct {
	args  []string
	stdin io.Reader
	text  string        // stdin, where that is nil
	out   *os.File      // nil: kept in the result
	kill  time.Duration // SIGKILL after so long; 0: never
	under []string      // what it runs under, such as strace
	root  string        // another root than the world's
}

// result is what is left of a process.
type result struct {
	args     []string
	out, err string
	code     int // -1: killed
}

func (r result) String() string {
	return fmt.Sprintf("atm %s: exit %d\nstdout: %s\nstderr: %s", clip(strings.Join(r.args, " ")), r.code, clip(r.out), clip(r.err))
}

func clip(s string) string {
	if s = strings.TrimSpace(s); len(s) > 300 {
		return s[:150] + " […] " + s[len(s)-150:]
	}
	return s
}

// longest is how long a process may take: none may hang.
const longest = 30 * time.Second

func (w *world) command(under []string, args ...string) *exec.Cmd {
	line := append(append(slices.Clone(under), w.atm, "--root", w.root), args...)
	cmd := exec.Command(line[0], line[1:]...)
	// (A binary with -race sleeps for a second at its end unless told otherwise.)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + w.home, "GORACE=atexit_sleep_ms=0"}
	cmd.Dir = w.home
	cmd.WaitDelay = time.Second
	return cmd
}

// run runs a process to its end, whatever that is.
func (w *world) run(c call) result {
	at := *w
	at.root = cmp.Or(c.root, w.root)
	cmd := at.command(c.under, c.args...)
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, &out, &stderr
	if c.text != "" {
		cmd.Stdin = strings.NewReader(c.text)
	}
	if c.out != nil {
		cmd.Stdout = c.out
	}
	if err := cmd.Start(); err != nil {
		w.t.Error(err)
		return result{args: c.args, code: -1}
	}
	if c.kill > 0 {
		defer time.AfterFunc(c.kill, func() { cmd.Process.Kill() }).Stop()
	}
	defer time.AfterFunc(longest, func() {
		w.wrong("it hangs: atm %s", strings.Join(c.args, " "))
		cmd.Process.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		cmd.Process.Kill()
	}).Stop()
	cmd.Wait()
	w.add("processes", 1)
	r := result{args: c.args, out: out.String(), err: stderr.String(), code: cmd.ProcessState.ExitCode()}
	w.proper(r)
	return r
}

// must runs a process that has to succeed.
func (w *world) must(args ...string) result {
	w.t.Helper()
	r := w.run(call{args: args})
	if r.code != 0 {
		w.t.Fatal(r)
	}
	return r
}

var ownLine = regexp.MustCompile(`^atm: `)

// proper notes what no process may do: a stack trace, an exit code that is
// none of ours, an error without a word, stderr that is not ours.
func (w *world) proper(r result) {
	if strings.HasPrefix(r.err, "runtime: eventfd failed with 24\n") || strings.HasPrefix(r.err, "runtime: epollcreate failed with 24\n") {
		return // Go itself needs three descriptors, at the first file that it polls
	}
	if strings.Contains(r.err, "panic: ") || strings.Contains(r.err, "goroutine ") || strings.Contains(r.err, "fatal error: ") {
		w.wrong("it panics: atm %s: exit %d\n%s", strings.Join(r.args, " "), r.code, r.err)
		return
	}
	if r.code > 6 {
		w.wrong("exit code: %s", r)
	}
	for line := range strings.Lines(r.err) {
		if !ownLine.MatchString(line) && r.code >= 0 {
			w.wrong("a line of stderr %q: %s", line, r)
			break
		}
	}
}
