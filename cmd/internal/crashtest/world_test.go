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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/testprogram"
	"github.com/agentteammail/atm/internal/testround"
)

func TestMain(m *testing.M) { testprogram.Main(m, testprogram.Beside) }

// lookPath finds one of the programs.
func lookPath(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A world is a root that processes work on, and the record of what they said.
type world struct {
	t    testing.TB
	atm  string
	home string
	root string
	cuts bool // the power may be cut: whoever drops a file syncs it
	size int  // of the texts; 0: they differ

	*record
}

// newWorld makes a root with these members below dir.
func newWorld(t testing.TB, dir string, members ...string) *world {
	t.Helper()
	w := &world{t: t, atm: os.Getenv("ATM_BINARY"), home: t.TempDir(), root: filepath.Join(dir, "root"), record: newRecord()}
	if w.atm == "" {
		w.atm = lookPath(t, "atm")
	}
	w.must(append([]string{"init"}, members...)...)
	return w
}

// memory is a directory in memory, or any where the system has no place for that.
func memory(t testing.TB) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "crashtest"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// copyTo is a copy of the root, which is accepted.
func (w *world) copyTo(t testing.TB, root string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", w.root, root).CombinedOutput(); err != nil {
		t.Fatalf("copy: %v: %s", err, out)
	}
	if err := rootdir.Accept(rootdir.Place{State: filepath.Join(w.home, ".local", "state", "atm"), UID: os.Getuid()}, root); err != nil {
		t.Fatal(err)
	}
}

// at is the same world with another root.
func (w *world) at(root string) *world {
	other := *w
	other.root = root
	return &other
}

func (w *world) team() string { return filepath.Join(w.root, "main") }

// write makes a token, and its text.
func (w *world) write() (token, string) { return write(cmp.Or(w.size, someSize())) }

// A call is one process, and what its output promises.
type call struct {
	args   []string
	stdin  string
	slowly bool                  // stdin comes line by line, some late
	kill   time.Duration         // SIGKILL after so long; 0: never
	under  []string              // what it runs under, such as strace
	root   string                // another one than the world's
	exits  []int                 // exit codes that are right, beside 0
	out    *os.File              // stdout; nil: kept in the result
	taker  func(*os.File) string // who reads stdout from a pipe, and what they got

	texts  []token // that it sends, in the order of its input
	events []key   // that it appends
	reader string  // whose mail it shows
}

// A result is what is left of a process.
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

func (w *world) command(under []string, args ...string) *exec.Cmd {
	line := append(append(slices.Clone(under), w.atm, "--root", w.root), args...)
	cmd := exec.Command(line[0], line[1:]...)
	// (A binary with -race sleeps for a second at its end unless told otherwise.)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + w.home, "GORACE=atexit_sleep_ms=0"}
	cmd.Dir = w.home
	cmd.WaitDelay = time.Second
	return cmd
}

// slowLines hands out line by line what it holds.
type slowLines string

func (l *slowLines) Read(p []byte) (int, error) {
	if *l == "" {
		return 0, io.EOF
	}
	if testround.Rand.IntN(5) == 0 {
		time.Sleep(time.Duration(testround.Rand.IntN(3000)) * time.Microsecond)
	}
	n := copy(p, (*l)[:strings.IndexByte(string(*l), '\n')+1])
	*l = (*l)[n:]
	return n, nil
}

// run runs a process to its end, whatever that is, and records what it said.
func (w *world) run(c call) result {
	cmd := w.at(cmp.Or(c.root, w.root)).command(c.under, c.args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if c.slowly {
		cmd.Stdin = (*slowLines)(&c.stdin)
	} else if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	if c.out != nil {
		cmd.Stdout = c.out
	}
	taken := make(chan string, 1)
	if c.taker != nil {
		read, write, err := os.Pipe()
		if err != nil {
			w.t.Error(err)
			return result{args: c.args, code: -1}
		}
		go func() {
			defer read.Close()
			taken <- c.taker(read)
		}()
		defer write.Close()
		c.out, cmd.Stdout = write, write
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		w.t.Error(err)
		return result{args: c.args, code: -1}
	}
	if c.kill > 0 {
		defer time.AfterFunc(c.kill, func() { cmd.Process.Kill() }).Stop()
	}
	// No process may hang.
	defer time.AfterFunc(2*time.Minute, func() {
		w.wrong("it hangs: atm %s", strings.Join(c.args, " "))
		cmd.Process.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		cmd.Process.Kill()
	}).Stop()
	cmd.Wait()
	r := result{args: c.args, out: out.String(), err: stderr.String(), code: cmd.ProcessState.ExitCode()}
	if c.taker != nil {
		c.out.Close()
		r.out = <-taken
	}
	w.proper(r)
	w.note(c, r, time.Since(began))
	return r
}

// must runs a process that has to succeed.
func (w *world) must(args ...string) result {
	w.t.Helper()
	return w.mustRun(call{args: args})
}

func (w *world) mustRun(c call) result {
	w.t.Helper()
	r := w.run(c)
	if r.code != 0 {
		w.t.Fatal(r)
	}
	return r
}

// mortal is after how long a process is killed: one in three is.
func mortal() time.Duration {
	if testround.Rand.IntN(3) > 0 {
		return 0
	}
	return time.Duration(300+testround.Rand.IntN(1<<(6+testround.Rand.IntN(11)))) * time.Microsecond
}

// try runs a process that may be killed.
func (w *world) try(c call) result {
	if c.kill == 0 {
		c.kill = mortal()
	}
	return w.run(c)
}

func one[T any](of ...T) T { return of[testround.Rand.IntN(len(of))] }

// pause waits for up to so many milliseconds.
func pause(ms int) { time.Sleep(time.Duration(testround.Rand.IntN(1000*ms+1)) * time.Microsecond) }
