//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/outlet"
)

// A console is this terminal while it shows an agent's. Whatever happens it is
// put back as it was: when the agent ends, an error or a panic of the goroutine
// that called openConsole (which defers close), a signal that asks this process
// to end, a terminal that no longer takes what is written. Only a kill -9 leaves
// it as it is.
//
// Two goroutines: one reads what is typed, until the process ends, and one
// hears signals, until close.
type console struct {
	in, out *os.File
	typed   chan []byte       // closed when the terminal has gone
	sizes   chan control.Size // the newest
	closed  chan struct{}
	signals chan os.Signal

	mu     sync.Mutex
	before *term.State // nil: as it was
	trail  control.Trail
	begun  bool // something was written
	cancel context.CancelCauseFunc
}

var (
	// errSuspended: somebody wants this process to stop for a while.
	errSuspended = errors.New("suspended")
	// errHungUp: the terminal has been closed.
	errHungUp = errors.New("the terminal was closed")
	// errAsked: a signal asks this process to end.
	errAsked = errors.New("asked to end")
)

// openConsole takes hold of the terminal. It is raw between enter and leave.
func openConsole(in, out *os.File) (*console, error) {
	if in == nil || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, cmdline.Usage("stdin and stdout are no terminal")
	}
	outlet.IgnoreSIGPIPE()
	c := &console{
		in: in, out: out, typed: make(chan []byte), sizes: make(chan control.Size, 1),
		closed: make(chan struct{}), signals: make(chan os.Signal, 8),
	}
	signal.Notify(c.signals, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	go c.read()
	go c.hear()
	return c, nil
}

// enter makes the terminal raw. The context that it returns ends, with the
// reason as its cause, when a signal asks for it.
func (c *console) enter(ctx context.Context) (context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, err := term.MakeRaw(int(c.in.Fd()))
	if err != nil {
		return nil, err
	}
	c.before, c.begun, c.trail = before, false, control.Trail{}
	ctx, c.cancel = context.WithCancelCause(ctx)
	return ctx, nil
}

// leave puts the terminal back as it was. Again is fine.
func (c *console) leave() {
	c.mu.Lock()
	before := c.before
	c.before = nil
	var undo []byte
	if c.begun {
		undo = c.trail.Undo()
	}
	if c.cancel != nil {
		c.cancel(nil)
	}
	c.mu.Unlock()
	if before == nil {
		return
	}
	// This never waits, the writing may.
	term.Restore(int(c.in.Fd()), before)
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.out.Write(undo)
	}()
	select {
	case <-written:
	case <-time.After(endWithin / 4):
	}
}

// close lets go of the terminal.
func (c *console) close() {
	c.leave()
	signal.Stop(c.signals)
	close(c.closed)
}

// Write shows output of the agent.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.before == nil {
		c.mu.Unlock()
		return 0, errHungUp // it is no longer the agent's
	}
	begun := c.begun
	c.begun = true
	c.trail.Write(p)
	c.mu.Unlock()
	// Not under the lock: a terminal that takes nothing must not keep leave
	// from putting it back.
	if !begun {
		if _, err := c.out.WriteString(control.Begin); err != nil {
			return 0, err
		}
	}
	return c.out.Write(p)
}

// size is the terminal's.
func (c *console) size() control.Size {
	cols, rows, err := term.GetSize(int(c.out.Fd()))
	if err != nil || cols <= 0 || rows <= 0 {
		return control.Size{Cols: 80, Rows: 24}
	}
	return control.Size{Cols: cols, Rows: rows}
}

func (c *console) read() {
	defer close(c.typed)
	for {
		buf := make([]byte, 4096)
		n, err := c.in.Read(buf)
		if n > 0 {
			select {
			case c.typed <- buf[:n]:
			case <-c.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *console) hear() {
	for {
		select {
		case s := <-c.signals:
			switch s {
			case syscall.SIGWINCH:
				select {
				case <-c.sizes: // an older one
				default:
				}
				c.sizes <- c.size()
			case syscall.SIGTSTP:
				c.end(errSuspended)
			case syscall.SIGHUP:
				c.end(errHungUp)
				go c.insist()
			default:
				c.end(errAsked)
				go c.insist()
			}
		case <-c.closed:
			return
		}
	}
}

func (c *console) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel(why)
	}
}

// insist ends a process that does not come to its end, as one whose terminal
// takes nothing.
func (c *console) insist() {
	select {
	case <-c.closed:
	case <-time.After(endWithin):
		c.leave()
		os.Exit(cmdline.ExitInterrupted)
	}
}

// pause stops this process, its terminal put back before, until somebody lets
// it go on. A stop that the kernel hands to another thread lets this one run
// for a moment longer, and what runs then would make the terminal raw again: so
// it waits for the signal that goes with going on; not for long, since nothing
// from within stops the first process of a container.
func (c *console) pause() {
	on := make(chan os.Signal, 1)
	signal.Notify(on, syscall.SIGCONT)
	defer signal.Stop(on)
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return
	}
	select {
	case <-on:
	case <-time.After(time.Second):
	}
}
