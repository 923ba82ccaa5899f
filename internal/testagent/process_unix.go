//go:build unix

package testagent

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

func openTerminal() (restore func(), cols, rows int, err error) {
	fd := int(os.Stdin.Fd())
	if cols, rows, err = term.GetSize(fd); err != nil {
		return nil, 0, 0, fmt.Errorf("look at the terminal: %w", err)
	}
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("make the terminal raw: %w", err)
	}
	return func() { term.Restore(fd, old) }, max(cols, 20), max(rows, 5), nil
}

var signalNames = map[os.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGINT: "INT", syscall.SIGTERM: "TERM"}

func (a *agent) listen() {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGWINCH)
	go func() {
		for sig := range c {
			a.events <- func() { a.signalled(sig) }
		}
	}()
}

func (a *agent) signalled(sig os.Signal) {
	if sig == syscall.SIGWINCH {
		if cols, rows, err := term.GetSize(int(os.Stdin.Fd())); err == nil && cols > 0 && rows > 0 {
			a.resized(cols, rows)
		}
		return
	}
	name := signalNames[sig]
	a.log.add(Entry{Event: Signalled, Text: name})
	if !a.o.ignores(name) {
		a.leave(128 + int(sig.(syscall.Signal)))
	}
}

// crash ends the program as nothing that it does itself would.
func crash() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// orphanEnv makes a process the one that is left behind: its value is for how long.
const orphanEnv = "FAKEAGENT_ORPHAN"

// leaveOrphan starts a process in a session of its own, and waits until signals do nothing to it.
func (a *agent) leaveOrphan(lasting time.Duration) {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	cmd := exec.Command(exe)
	cmd.Args = os.Args[:1]
	cmd.Env = append(os.Environ(), orphanEnv+"="+lasting.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		a.log.add(Entry{Event: Orphaned, Text: err.Error()})
		return
	}
	said.Read(make([]byte, 1))
	said.Close()
	go cmd.Wait()
	a.log.add(Entry{Event: Orphaned, Code: cmd.Process.Pid})
}

// linger is the whole life of the process that was left behind.
func linger(lasting time.Duration) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	os.Stderr.Write([]byte("."))
	os.Stderr.Close()
	time.Sleep(lasting)
}
