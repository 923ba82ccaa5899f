//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Child is a program on a terminal of its own. Its methods may be called from several goroutines; Read is
// for one of them, and so is Write.
type Child struct {
	cmd   *exec.Cmd
	pid   int
	start uint64 // see Info
	mark  string // its value of ATM_RUN

	master *os.File // in non-blocking mode: its Fd must not be called

	done chan struct{}
	exit Exit // written before done is closed

	drained    chan struct{} // closed when Read has returned io.EOF
	drainOnce  sync.Once
	unreadLeft int // how many bytes may still be read after readGrace: more than the kernel keeps

	stopping sync.Mutex
}

// running are the programs that were started here and are not closed yet, by number. It is locked while one
// is started, so that none is taken for an adopted process before it is entered.
var (
	runningLock sync.Mutex
	running     = make(map[int]*Child)
)

// Start runs a command. The caller must Read until io.EOF, or the program stands still when the terminal is
// full, and Close at the end.
func Start(c Command) (_ *Child, err error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("run a program: no program was given")
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("run %s: %w", c.Argv[0], err)
		}
	}()
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	path, err := lookUp(c.Argv[0], envValue(env, "PATH"))
	if err != nil {
		return nil, err
	}
	if dir, err := filepath.Abs(c.Dir); c.Dir != "" && err == nil {
		env = append(slices.Clone(env), "PWD="+dir)
	}
	size, err := winsize(c.Cols, c.Rows)
	if err != nil {
		return nil, err
	}
	master, tty, err := openTerminal(&size)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer tty.Close()
	child := &Child{
		cmd: &exec.Cmd{
			Path: path, Args: c.Argv, Dir: c.Dir, Env: env,
			Stdin: tty, Stdout: tty, Stderr: tty,
			SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true},
		},
		mark:       envValue(env, "ATM_RUN"),
		master:     master,
		done:       make(chan struct{}),
		drained:    make(chan struct{}),
		unreadLeft: 64 << 10,
	}
	runningLock.Lock()
	defer runningLock.Unlock()
	catchIgnoredSignals()
	closeFilesOnExec()
	if err := child.cmd.Start(); err != nil {
		master.Close()
		return nil, err
	}
	child.pid = child.cmd.Process.Pid
	e, _ := readEntry(child.pid)
	child.start = e.Start
	running[child.pid] = child
	go child.wait()
	return child, nil
}

// catchIgnoredSignals catches and drops signals that are ignored here. A program would inherit that they are ignored:
// one whose runner was started by nohup, or by a script with &, could not be hung up or interrupted.
func catchIgnoredSignals() {
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGTSTP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

func (c *Child) wait() {
	c.cmd.Wait() // its state says more than the error
	c.exit = Exit{Code: c.cmd.ProcessState.ExitCode()}
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		c.exit = Exit{Code: 128 + int(status.Signal()), Signal: unix.SignalName(status.Signal())}
	}
	c.master.SetWriteDeadline(time.Unix(1, 0))
	c.master.SetReadDeadline(time.Now().Add(readGrace))
	close(c.done)
}

// lookUp finds a program on a PATH, of which a relative entry counts for nothing. A name with a slash is left
// to the kernel, which resolves it in the program's directory.
func lookUp(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(found) {
			return found, nil
		}
	}
	return "", ErrNoProgram
}

// value is that of a variable in an environment; the last one counts.
func envValue(env []string, name string) (value string) {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// PID is the program's process, which also names its session and group.
func (c *Child) PID() int { return c.pid }

// Done is closed when the program has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit is how it ended. Only after Done.
func (c *Child) Exit() Exit { return c.exit }

func (c *Child) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
