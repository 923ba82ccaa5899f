//go:build linux || darwin

package process

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Helper is a program that is run beside another one. It is started in a session of its own and without a terminal, and Stop
// does not end it.
type Helper struct {
	cmd  *exec.Cmd
	done chan struct{}
	exit Exit // written before done is closed
}

// StartHelper starts one. What it prints goes to out, which one goroutine writes to.
func StartHelper(c Command, out io.Writer) (*Helper, error) {
	cmd, err := c.prepare()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, readGrace
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	h := &Helper{cmd: cmd, done: make(chan struct{})}
	if err := new(Child).startCommand(cmd); err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Argv[0], NoProgramError{err})
	}
	go func() {
		cmd.Wait()
		unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // a wrapper may have died without its program
		h.exit = exitOf(cmd)
		runningLock.Lock()
		delete(running, cmd.Process.Pid)
		runningLock.Unlock()
		close(h.done)
	}()
	return h, nil
}

// Done is closed when it has ended.
func (h *Helper) Done() <-chan struct{} { return h.done }

// Exit returns how it ended. Only after Done.
func (h *Helper) Exit() Exit { return h.exit }

// Kill kills it, with its process group, and waits for it.
func (h *Helper) Kill() {
	if !isClosed(h.done) {
		unix.Kill(-h.cmd.Process.Pid, unix.SIGKILL)
	}
	<-h.done
}
