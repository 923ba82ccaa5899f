//go:build unix

package fakeagent

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/agentteammail/atm/ptyrun/screen"
)

func TestMain(m *testing.M) {
	Reexec()
	flag.Parse()
	// The tests wait for other processes and for time to pass.
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// rig is the program on a real PTY, with a terminal that shows and answers.
type rig struct {
	t    *testing.T
	cmd  *exec.Cmd
	file *os.File
	log  string

	mu      sync.Mutex
	screen  *screen.Screen
	raw     []byte
	mute    bool // answers no query
	changed chan struct{}
	gone    chan struct{} // closed when the terminal is at its end
}

func start(t *testing.T, o Options) *rig { return startIn(t, o, 100, 30, false) }

func startIn(t *testing.T, o Options, cols, rows int, mute bool) *rig {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "proj")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o.Deterministic = true
	o.Log = filepath.Join(filepath.Dir(dir), "log")
	o.Life = time.Minute
	argv, env, err := Command(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, log: o.Log, screen: screen.New(cols, rows, 1000), mute: mute, changed: make(chan struct{}, 1), gone: make(chan struct{})}
	r.cmd = exec.Command(argv[0], argv[1:]...)
	r.cmd.Dir = dir
	r.cmd.Env = append(os.Environ(), append(env, "TERM=xterm-256color", "HOME="+filepath.Dir(dir))...)
	r.file, err = pty.StartWithSize(r.cmd, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
	if err != nil {
		t.Fatal(err)
	}
	go r.watch()
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait()
		r.file.Close()
	})
	return r
}

func (r *rig) watch() {
	defer close(r.gone)
	buf := make([]byte, 16<<10)
	for {
		n, err := r.file.Read(buf)
		r.mu.Lock()
		r.screen.Write(buf[:n])
		r.raw = append(r.raw, buf[:n]...)
		replies := r.screen.Replies()
		r.mu.Unlock()
		if len(replies) > 0 && !r.mute {
			r.file.Write(replies)
		}
		select {
		case r.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// until waits until the screen is as wanted.
func (r *rig) until(what string, ok func(s *screen.Screen) bool) {
	r.t.Helper()
	late := time.After(patience)
	for {
		r.mu.Lock()
		good := ok(r.screen)
		r.mu.Unlock()
		if good {
			return
		}
		select {
		case <-r.changed:
		case <-time.After(50 * time.Millisecond): // titles that blink
		case <-late:
			r.t.Fatalf("%s did not come\n%s", what, r.show())
		}
	}
}

// sees waits until all these stand on the screen.
func (r *rig) sees(texts ...string) {
	r.t.Helper()
	r.until(strings.Join(texts, " and "), func(s *screen.Screen) bool {
		all := strings.Join(s.Lines(), "\n")
		for _, text := range texts {
			if !strings.Contains(all, text) {
				return false
			}
		}
		return true
	})
}

// misses waits until none of these stands there any more.
func (r *rig) misses(texts ...string) {
	r.t.Helper()
	r.until("no "+strings.Join(texts, " nor "), func(s *screen.Screen) bool {
		all := strings.Join(s.Lines(), "\n")
		for _, text := range texts {
			if strings.Contains(all, text) {
				return false
			}
		}
		return true
	})
}

func (r *rig) titled(part string) {
	r.t.Helper()
	r.until("title "+part, func(s *screen.Screen) bool { return strings.Contains(s.Title(), part) })
}

func (r *rig) modes() screen.Modes {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.screen.Modes()
}

// wrote says whether these bytes ever came.
func (r *rig) wrote(s string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.raw, []byte(s))
}

func (r *rig) show() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return "title: " + r.screen.Title() + "\n" + strings.TrimRight(strings.Join(r.screen.Lines(), "\n"), "\n")
}

// logs waits for the log.
func (r *rig) logs(what string, enough func(Entries) bool) Entries {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	es, err := WaitLog(ctx, r.log, enough)
	if err != nil {
		r.t.Fatalf("log of %s: %v\n%s", what, err, r.show())
	}
	return es
}

func (r *rig) logged(event string) Entries {
	r.t.Helper()
	return r.logs(event, func(es Entries) bool { return es.Has(event) })
}

func (r *rig) state(state string) {
	r.t.Helper()
	r.logs(state, func(es Entries) bool {
		states := es.Of(State)
		return len(states) > 0 && states[len(states)-1].Text == state
	})
}

func (r *rig) keys(s string) {
	r.t.Helper()
	if _, err := r.file.WriteString(s); err != nil {
		r.t.Fatal(err)
	}
}

// say sends a message as a careful runner does: pasted, seen, then Return.
func (r *rig) say(text string) {
	r.t.Helper()
	n := len(r.logs("anything", func(Entries) bool { return true }).Of(Typed))
	r.keys("\x1b[200~" + text + "\x1b[201~")
	r.logs("the paste", func(es Entries) bool { return len(es.Of(Typed)) > n })
	r.keys("\r")
}

// interrupts ends the turn as its user would, and waits until it is over.
func (r *rig) interrupts(name string) {
	r.t.Helper()
	n := len(r.logs("anything", func(Entries) bool { return true }).Of(Interrupted))
	r.keys("\x1b")
	if name == "opencode" {
		r.sees("esc again to interrupt")
		r.keys("\x1b")
	}
	r.logs("interrupt", func(es Entries) bool { return len(es.Of(Interrupted)) > n })
	r.state("idle")
}

// ends waits for the process; its code is 128+n for a signal.
func (r *rig) ends() int {
	r.t.Helper()
	done := make(chan error, 1)
	go func() { done <- r.cmd.Wait() }()
	select {
	case err := <-done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			r.t.Fatal(err)
		}
	case <-time.After(patience):
		r.t.Fatalf("it does not end\n%s", r.show())
	}
	if w := r.cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		return 128 + int(w.Signal())
	}
	return r.cmd.ProcessState.ExitCode()
}
