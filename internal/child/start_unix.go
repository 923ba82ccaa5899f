//go:build linux || darwin || freebsd

package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Child is a program on a terminal of its own. Its methods may be called from
// several goroutines; Read is for one of them.
type Child struct {
	cmd     *exec.Cmd
	pid     int
	start   uint64
	started time.Time
	mark    string

	master *os.File // in non-blocking mode: its Fd must not be called
	raw    syscall.RawConn

	done chan struct{}
	exit Exit // before done is closed

	read     atomic.Bool   // somebody reads
	drained  chan struct{} // Read has said io.EOF
	drain    sync.Once
	leftover int // what may still be read after the grace

	writing sync.Mutex
	window  window

	holding  sync.Mutex // held while the group is signalled by number, and while that number is given away
	released bool

	stopping sync.Mutex
	ended    *Ended
	hurry    chan struct{} // closed by a Stop without grace
	hasten   sync.Once
}

// Start runs a command. The caller must Read until io.EOF, or the program stands
// still when the terminal is full, and Close at the end.
func Start(c Command) (*Child, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("run a program: no program was given")
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	path, err := lookUp(c.Argv[0], c.Dir, env)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	if c.Dir != "" {
		dir, err := filepath.Abs(c.Dir)
		if err != nil {
			return nil, fmt.Errorf("run %s in %s: %w", c.Argv[0], c.Dir, err)
		}
		env = append(env[:len(env):len(env)], "PWD="+dir)
	}
	size, err := winsize(c.Cols, c.Rows)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	master, tty, err := openTerminal(size)
	if err != nil {
		return nil, fmt.Errorf("run %s: open a terminal: %w", c.Argv[0], err)
	}
	defer tty.Close()

	ch := &Child{
		cmd: &exec.Cmd{
			Path: path, Args: c.Argv, Dir: c.Dir, Env: env,
			Stdin: tty, Stdout: tty, Stderr: tty,
			SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true},
		},
		mark:    mark(env),
		master:  master,
		done:    make(chan struct{}),
		drained: make(chan struct{}),
		hurry:   make(chan struct{}),
	}
	ch.window.size = *size
	ch.leftover = kernelHolds
	if ch.raw, err = master.SyscallConn(); err != nil {
		master.Close()
		return nil, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	kin.Lock()
	defer kin.Unlock()
	defer hear()()
	keepFiles()
	if err := ch.cmd.Start(); err != nil {
		master.Close()
		return nil, fmt.Errorf("run %s: %w", c.Argv[0], bare(err))
	}
	ch.started = time.Now()
	ch.pid = ch.cmd.Process.Pid
	if e, ok := look(ch.pid); ok {
		ch.start = e.start
	}
	if kin.of == nil {
		kin.of = make(map[int]*Child)
	}
	kin.of[ch.pid] = ch
	go ch.watch()
	return ch, nil
}

// hear undoes, until the returned function is called, that signals are ignored.
// A program would inherit that: one whose runner was started by nohup, or by a
// script with &, could not be hung up or interrupted.
func hear() (undo func()) {
	var deaf []os.Signal
	for _, sig := range []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGWINCH,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT, unix.SIGUSR1, unix.SIGUSR2,
	} {
		if signal.Ignored(sig) {
			deaf = append(deaf, sig)
		}
	}
	if len(deaf) == 0 {
		return func() {}
	}
	nobody := make(chan os.Signal, 1)
	signal.Notify(nobody, deaf...) // what is caught here is not ignored there
	return func() {
		signal.Stop(nobody)
		signal.Ignore(deaf...)
	}
}

// watch waits for the program's end.
func (c *Child) watch() {
	c.exit = c.await()
	c.master.SetWriteDeadline(time.Unix(1, 0))
	c.master.SetReadDeadline(time.Now().Add(readGrace))
	close(c.done)
}

// openTerminal opens a PTY. The os package would close neither it nor a blocked
// Read or Write on it in time while the master is in blocking mode, and asking
// for its number, as creack/pty must, puts it there. So a duplicate is used that
// was put back.
func openTerminal(size *pty.Winsize) (master, tty *os.File, err error) {
	first, tty, err := pty.Open()
	if err != nil {
		return nil, nil, bare(err)
	}
	defer first.Close()
	defer func() {
		if err != nil {
			tty.Close()
		}
	}()
	if err := pty.Setsize(first, size); err != nil {
		return nil, nil, err
	}
	// Without it the kernel's line editing erases bytes, not characters.
	// A system that knows nothing of that is no reason to give up.
	eraseRunes(int(tty.Fd()))
	fd, err := unix.FcntlInt(first.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), first.Name()), tty, nil
}

// lookUp finds a program as a shell in dir with that environment would, except
// that a relative entry of PATH counts for nothing.
func lookUp(name, dir string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		return path, executable(path)
	}
	var list string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			list = v
		}
	}
	found := errors.New("no such program on PATH")
	for _, place := range filepath.SplitList(list) {
		if !filepath.IsAbs(place) {
			continue
		}
		path := filepath.Join(place, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, os.ErrPermission) {
			found = fmt.Errorf("%s: %w", path, err)
		}
	}
	return "", found
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return bare(err)
	case info.IsDir():
		return errors.New("is a directory")
	case info.Mode()&0o111 == 0:
		return os.ErrPermission
	}
	return unix.Access(path, unix.X_OK)
}

// bare takes operation and path off an error that will be given its own.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func signalled(sig unix.Signal) Exit {
	name := unix.SignalName(sig)
	if name == "" { // a real-time signal
		name = fmt.Sprintf("SIG%d", sig)
	}
	return Exit{Code: 128 + int(sig), Signal: name}
}

// PID is the program's process, which also names its session and group.
func (c *Child) PID() int { return c.pid }

// Started is when it was started.
func (c *Child) Started() time.Time { return c.started }

// Process is the program as Leftovers would name it: what a later runner needs
// to know it again.
func (c *Child) Process() Process {
	p := Process{PID: c.pid, Name: filepath.Base(c.cmd.Path), Cmdline: strings.Join(c.cmd.Args, " "), Start: c.start}
	if e, ok := look(c.pid); ok && e.start == c.start {
		p.Name = e.name
	}
	return p
}

// Done is closed when the program has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit is how it ended. Only after Done.
func (c *Child) Exit() Exit { return c.exit }

func (c *Child) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
