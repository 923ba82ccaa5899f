//go:build unix

package fakeagent

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// openTerminal puts the terminal of the standard input into raw mode.
func openTerminal() (restore func(), cols, rows int, err error) {
	fd := int(os.Stdin.Fd())
	cols, rows, err = term.GetSize(fd)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("look at the terminal: %w", err)
	}
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("make the terminal raw: %w", err)
	}
	if cols < 1 || rows < 1 { // nobody has said
		cols, rows = 80, 24
	}
	return func() { _ = term.Restore(fd, old) }, cols, rows, nil
}

func signalNamed(name string) os.Signal {
	switch strings.TrimPrefix(name, "SIG") {
	case "HUP":
		return syscall.SIGHUP
	case "INT":
		return syscall.SIGINT
	case "TERM":
		return syscall.SIGTERM
	case "QUIT":
		return syscall.SIGQUIT
	case "KILL":
		return syscall.SIGKILL
	case "ABRT":
		return syscall.SIGABRT
	case "SEGV":
		return syscall.SIGSEGV
	}
	return nil
}

func nameOf(sig os.Signal) string {
	switch sig {
	case syscall.SIGHUP:
		return "HUP"
	case syscall.SIGINT:
		return "INT"
	case syscall.SIGTERM:
		return "TERM"
	}
	return sig.String()
}

// listen brings signals to the loop.
func (a *agent) listen() (stop func()) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGWINCH)
	go func() {
		for sig := range c {
			a.events <- func() { a.signalled(sig) }
		}
	}()
	return func() { signal.Stop(c) }
}

func (a *agent) signalled(sig os.Signal) {
	if sig == syscall.SIGWINCH {
		a.resized()
		return
	}
	name := nameOf(sig)
	a.log.add(Entry{Event: Signalled, Text: name})
	switch {
	case hasWord(strings.ReplaceAll(a.o.Trap, ",", " "), name):
	case sig == syscall.SIGINT:
		a.leave(leaving{code: 130})
	case a.p.exits && sig == syscall.SIGHUP:
		a.leave(leaving{code: 129, quiet: true})
	case a.p.exits:
		a.leave(leaving{code: 143, quiet: true})
	default:
		a.leave(leaving{signal: name, quiet: true})
	}
}

func (a *agent) resized() {
	cols, rows, err := term.GetSize(int(os.Stdin.Fd()))
	if err != nil || cols < 1 || rows < 1 {
		return
	}
	a.cols, a.rows = cols, rows
	a.screen.cols, a.screen.rows = cols, rows
	a.screen.forget()
	a.log.add(Entry{Event: Resized, Text: fmt.Sprintf("%dx%d", cols, rows)})
}

// hungUp is the end of input: the terminal is gone. Who traps HUP lives on.
func (a *agent) hungUp() {
	if hasWord(strings.ReplaceAll(a.o.Trap, ",", " "), "HUP") {
		return
	}
	if a.p.exits {
		a.leave(leaving{code: 129, quiet: true})
		return
	}
	a.leave(leaving{signal: "HUP", quiet: true})
}

// end is the way out of the program.
func (a *agent) end(restore func()) (int, error) {
	l := *a.going
	if l.crash != "" {
		a.log.add(Entry{Event: Exited, Text: l.crash})
		return dieOf(l.crash)
	}
	if l.restart {
		a.log.add(Entry{Event: Restarted})
	} else {
		a.hooks.sessionEnd()
	}
	bye := ""
	if !a.p.full && a.ready {
		if down := len(a.screen.drawn) - 1 - a.screen.y; down > 0 {
			bye = fmt.Sprintf("\x1b[%dB", down)
		}
		bye += "\r\n"
	}
	a.screen.raw(bye + a.p.bye)
	if !l.quiet && !l.restart {
		a.screen.raw(a.p.farewell(a))
	}
	restore()
	if l.restart {
		return startAnew()
	}
	a.log.add(Entry{Event: Exited, Code: l.code, Text: l.signal})
	if l.signal != "" {
		return dieOf(l.signal)
	}
	return l.code, nil
}

// startAnew puts the same program in place of this process.
func startAnew() (int, error) {
	exe, err := os.Executable()
	if err != nil {
		return 2, fmt.Errorf("start anew: %w", err)
	}
	os.Setenv(againEnv, "1")
	return 2, fmt.Errorf("start anew: %w", syscall.Exec(exe, os.Args, os.Environ()))
}

// dieOf ends this process with a signal. A shell does it in its place: Go's
// runtime makes an exit code of some. What is caught when another program begins
// is not ignored by it, as it would be under nohup.
func dieOf(name string) (int, error) {
	signal.Reset()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	err := syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -" + name + " $$"}, os.Environ())
	return 2, fmt.Errorf("die of %s: %w", name, err)
}

// orphanEnv makes a process the one that is left behind: its value is for how
// long.
const orphanEnv = "FAKEAGENT_ORPHAN"

// leaveOrphan starts a process in a session of its own.
func (a *agent) leaveOrphan(lasting time.Duration, holdsTerminal bool) {
	pid, err := startOrphan(lasting, holdsTerminal)
	e := Entry{Event: Orphaned, Code: pid}
	if err != nil {
		e.Text = err.Error()
	}
	a.log.add(e)
}

func startOrphan(lasting time.Duration, holdsTerminal bool) (int, error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(exe)
	cmd.Args = os.Args[:1]
	cmd.Env = append(os.Environ(), orphanEnv+"="+lasting.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if holdsTerminal {
		cmd.Stdout = os.Stdout
	}
	// It says when signals do nothing to it any more.
	said, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_, err = said.Read(make([]byte, 1))
	said.Close()
	go cmd.Wait()
	return cmd.Process.Pid, err
}

// linger is the whole life of the process that was left behind.
func linger(lasting string) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	os.Stderr.Write([]byte("."))
	os.Stderr.Close()
	d, err := time.ParseDuration(lasting)
	if err != nil {
		d = time.Second
	}
	time.Sleep(d)
	return 0
}

// exitCode is what a shell makes of the end of a command.
func exitCode(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}
