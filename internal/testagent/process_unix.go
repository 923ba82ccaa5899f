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
		return nil, 0, 0, fmt.Errorf("get the terminal's size: %w", err)
	}
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("make the terminal raw: %w", err)
	}
	return func() { term.Restore(fd, old) }, max(cols, 20), max(rows, 5), nil
}

var signalNames = map[os.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGINT: "INT", syscall.SIGTERM: "TERM"}

func (a *agent) handleSignals() {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGWINCH)
	go func() {
		for sig := range c {
			a.events <- func() { a.handleSignal(sig) }
		}
	}()
}

func (a *agent) handleSignal(sig os.Signal) {
	if sig == syscall.SIGWINCH {
		if cols, rows, err := term.GetSize(int(os.Stdin.Fd())); err == nil && cols > 0 && rows > 0 {
			a.cols, a.rows, a.printed = cols, rows, 0
			a.screen.drawn = frame{}
			os.Stdout.WriteString("\x1b[H\x1b[2J\x1b[3J")
		}
		return
	}
	if !a.o.ignores(signalNames[sig]) {
		a.exitWith(128 + int(sig.(syscall.Signal)))
	}
}

// killSelf ends the program as if something else had killed it.
func killSelf() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// leaveOrphan starts a process in a session of its own, and waits until that ignores signals.
func (a *agent) leaveOrphan(duration time.Duration) {
	exe, _ := os.Executable()
	cmd := exec.Command(exe)
	cmd.Args = os.Args[:1]
	cmd.Env = append(os.Environ(), orphanEnv+"="+duration.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ready, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		a.log.add(Entry{Event: Orphaned, Text: err.Error()})
		return
	}
	ready.Read(make([]byte, 1))
	ready.Close()
	go cmd.Wait()
	a.log.add(Entry{Event: Orphaned, Code: cmd.Process.Pid})
}

// runOrphan is all that the orphan does.
func runOrphan(duration time.Duration) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	os.Stderr.Write([]byte("."))
	os.Stderr.Close()
	time.Sleep(duration)
}
