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

// Child is a program on a PTY. Its methods may be called concurrently, but only one goroutine may Read, and one Write.
type Child struct {
	cmd   *exec.Cmd
	pid   int
	start uint64 // see Info
	mark  string // its ATM_RUN

	master *os.File // non-blocking; never call its Fd

	done chan struct{}
	exit Exit // written before done is closed

	drained    chan struct{} // closed when Read has returned io.EOF
	drainOnce  sync.Once
	unreadLeft int // bytes that may still be read after readGrace: more than the kernel buffers

	stopping sync.Mutex
}

// running has the started programs that are not stopped yet, by PID. It is locked during a start, so that the new child
// is not taken for an adopted process.
var (
	runningLock sync.Mutex
	running     = make(map[int]*Child)
)

// Start runs a command. The caller must Read until io.EOF, because the program blocks when the terminal's buffer is
// full, and Stop at the end.
func Start(c Command) (*Child, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("run a program: no program was given")
	}
	child, err := start(c)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	return child, nil
}

func start(c Command) (*Child, error) {
	cmd, err := c.prepare()
	if err != nil {
		return nil, err
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
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	child := &Child{
		cmd:        cmd,
		mark:       envValue(cmd.Env, "ATM_RUN"),
		master:     master,
		done:       make(chan struct{}),
		drained:    make(chan struct{}),
		unreadLeft: 64 << 10,
	}
	runningLock.Lock()
	defer runningLock.Unlock()
	catchIgnoredSignals()
	closeFilesOnExec()
	if err := cmd.Start(); err != nil {
		master.Close()
		return nil, NoProgramError{err}
	}
	child.pid = cmd.Process.Pid
	p, _ := readInfo(child.pid)
	child.start = p.Start
	running[child.pid] = child
	go child.wait()
	return child, nil
}

// prepare finds the program and its directory. The program leads a session of its own.
func (c *Command) prepare() (*exec.Cmd, error) {
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	path, err := LookUp(c.Argv[0], c.Dir, env)
	if err != nil {
		return nil, err
	}
	if c.Dir != "" {
		if _, err := os.Stat(c.Dir); err != nil { // fork/exec would blame the program
			return nil, err
		}
		if dir, err := filepath.Abs(c.Dir); err == nil {
			env = append(slices.Clone(env), "PWD="+dir)
		}
	}
	leads := &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: env, SysProcAttr: leads}, nil
}

// catchIgnoredSignals catches and drops the signals that this process ignores. Programs inherit that a signal is
// ignored: under a runner started by nohup, or by a script with &, they could not be hung up or interrupted.
func catchIgnoredSignals() {
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGTSTP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

func (c *Child) wait() {
	c.cmd.Wait() // the state has all that the error says
	c.exit = Exit{Code: c.cmd.ProcessState.ExitCode()}
	if status := c.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		c.exit = Exit{Code: 128 + int(status.Signal()), Signal: unix.SignalName(status.Signal())}
	}
	c.master.SetWriteDeadline(time.Unix(1, 0))
	c.master.SetReadDeadline(time.Now().Add(readGrace))
	close(c.done)
}

// LookUp finds a program in the absolute directories of an environment's PATH, or returns a NoProgramError. The kernel
// resolves a name with a slash in the directory that the program runs in.
func LookUp(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if dir != "" && !filepath.IsAbs(name) {
			file = filepath.Join(dir, name)
		}
		if _, err := exec.LookPath(file); err != nil {
			return "", NoProgramError{errors.Unwrap(err)}
		}
		return name, nil
	}
	for _, dir := range filepath.SplitList(envValue(env, "PATH")) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(found) {
			return found, nil
		}
	}
	return "", NoProgramError{errors.New("no such program on PATH")}
}

// envValue returns a variable's value in an environment; the last one counts.
func envValue(env []string, name string) (value string) {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// PID is also the program's session and process group.
func (c *Child) PID() int { return c.pid }

// Done is closed when the program has exited.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit returns how it exited. Only after Done.
func (c *Child) Exit() Exit { return c.exit }

func (c *Child) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
