//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"io"
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

	"github.com/agentteammail/atm/internal/lockfile"
)

// Child is a program on a PTY, or on pipes: then Read, Write and what is about the terminal are not for it. Its methods
// may be called concurrently, but only one goroutine may Read, and one Write.
type Child struct {
	// Set if it has pipes. Reads end as Read does; one goroutine may read each. A write fails when the program has exited.
	Stdin          io.WriteCloser
	Stdout, Stderr io.Reader

	cmd   *exec.Cmd
	pid   int
	start uint64 // see Info
	mark  string // its ATM_RUN

	in      *os.File // non-blocking, never call its Fd: the PTY's master, or the pipe to stdin
	outputs []*output

	done chan struct{}
	exit Exit // written before done is closed

	stopping sync.Mutex
}

// running has the started programs that are not stopped yet and the helpers that run, by PID; a helper has a Child of its
// own. It is locked during a start, so that the new child is not taken for an orphan.
var (
	runningLock sync.Mutex
	running     = make(map[int]*Child)
)

// Start runs a command. The caller must Read until io.EOF, because the program blocks when the terminal's buffer is
// full, and Stop at the end, which gives a slow reader five seconds.
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
	child := &Child{cmd: cmd, mark: Variables(cmd.Env)["ATM_RUN"], done: make(chan struct{})}
	closeTheirs, err := child.connect(c)
	if err != nil {
		return nil, err
	}
	defer closeTheirs()
	if err := child.startCommand(cmd); err != nil {
		child.closeFiles()
		return nil, NoProgramError{err}
	}
	child.pid = cmd.Process.Pid
	p, _ := readInfo(child.pid)
	child.start = p.Start
	go child.wait()
	return child, nil
}

// connect gives the program a terminal or pipes. Close its ends of them when it has started.
func (c *Child) connect(as Command) (closeTheirs func(), err error) {
	if as.Pipes {
		return c.openPipes()
	}
	size, err := winsize(as.Cols, as.Rows)
	if err != nil {
		return nil, err
	}
	master, tty, err := openTerminal(&size)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	c.cmd.SysProcAttr.Setctty = true
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = tty, tty, tty
	c.in, c.outputs = master, []*output{newOutput(master)}
	return func() { tty.Close() }, nil
}

// startCommand starts the program, or a helper.
func (c *Child) startCommand(cmd *exec.Cmd) error {
	lockfile.Waits("start " + cmd.Path)
	runningLock.Lock()
	defer runningLock.Unlock()
	catchIgnoredSignals()
	closeFilesOnExec()
	if err := cmd.Start(); err != nil {
		return err
	}
	running[cmd.Process.Pid] = c
	return nil
}

func (c *Child) forget() {
	runningLock.Lock()
	defer runningLock.Unlock()
	if running[c.pid] == c {
		delete(running, c.pid)
	}
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
	leads := &syscall.SysProcAttr{Setsid: true}
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
	c.exit = exitOf(c.cmd)
	c.in.SetWriteDeadline(time.Unix(1, 0))
	for _, o := range c.outputs {
		o.file.SetReadDeadline(time.Now().Add(readGrace))
	}
	close(c.done)
}

func exitOf(cmd *exec.Cmd) Exit {
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return Exit{Code: 128 + int(status.Signal()), Signal: unix.SignalName(status.Signal())}
	}
	return Exit{Code: cmd.ProcessState.ExitCode()}
}

// LookUp finds a program in the absolute directories of an environment's PATH, or returns a NoProgramError. The kernel
// resolves a name with a slash in the directory that the program runs in.
func LookUp(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if dir != "" && !filepath.IsAbs(name) {
			file = filepath.Join(dir, name)
		}
		_, err := exec.LookPath(file)
		switch err = errors.Unwrap(err); {
		case err == nil:
			return name, nil
		case strings.HasPrefix(name, "~/") || strings.HasPrefix(name, "$"):
			err = errors.New("no shell reads it: write the path out, or use sh -c")
		}
		return "", NoProgramError{err}
	}
	for _, dir := range filepath.SplitList(Variables(env)["PATH"]) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(found) {
			return found, nil
		}
	}
	return "", NoProgramError{errors.New("no such program on PATH")}
}

// PID is also the program's session and process group.
func (c *Child) PID() int { return c.pid }

// Done is closed when the program has exited.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit returns how it exited. Only after Done.
func (c *Child) Exit() Exit { return c.exit }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
