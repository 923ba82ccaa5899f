//go:build unix

package agent

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/output"
)

// A console is this terminal while it shows an agent's. It is put back as it was
// when the agent ends, on an error, a panic of the goroutine that opened it (which
// defers close), a signal, and also where it takes nothing more. Only kill -9
// leaves it raw.
//
// Two goroutines: one reads what is typed until the process ends, one waits for
// signals until close.
type console struct {
	in, out *os.File
	typed   chan []byte // closed when the terminal has gone
	sizes   chan control.Size
	signals chan os.Signal
	closed  chan struct{}

	mu        sync.Mutex
	before    *term.State // nil: it is as it was
	alternate alternateScreen
	begun     bool // something was written

	ctx    context.Context // ends when a signal asks for that, which is its cause
	cancel context.CancelCauseFunc
}

// openConsole takes hold of the terminal, which is raw between enter and leave.
func openConsole(ctx context.Context, in, out *os.File) (*console, error) {
	output.IgnoreSIGPIPE()
	con := &console{
		in: in, out: out, typed: make(chan []byte), sizes: make(chan control.Size, 1),
		signals: make(chan os.Signal, 8), closed: make(chan struct{}),
	}
	con.ctx, con.cancel = context.WithCancelCause(ctx)
	signal.Notify(con.signals, syscall.SIGWINCH, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	go con.read()
	go con.waitForSignals()
	return con, nil
}

// enter makes the terminal raw.
func (con *console) enter() error {
	con.mu.Lock()
	defer con.mu.Unlock()
	before, err := term.MakeRaw(int(con.in.Fd()))
	con.before = before
	return err
}

// leave puts the terminal back. A program that has ended has left the cursor below
// its output; else it goes to the bottom.
func (con *console) leave(exited bool) {
	con.mu.Lock()
	before := con.before
	con.before = nil
	undo := ""
	if con.begun {
		undo = resetModes
	}
	if con.begun && con.alternate.isOn {
		undo += leaveAlternate
	} else if con.begun && !exited {
		undo += toBottom
	}
	con.mu.Unlock()
	if before == nil {
		return
	}
	// This never waits; writing may.
	term.Restore(int(con.in.Fd()), before)
	written := make(chan struct{})
	go func() {
		defer close(written)
		con.out.WriteString(undo)
	}()
	select {
	case <-written:
	case <-time.After(endWithin / 4):
	}
}

func (con *console) close() {
	con.leave(false)
	con.cancel(nil)
	signal.Stop(con.signals)
	close(con.closed)
}

// Write shows output of the agent.
func (con *console) Write(p []byte) (int, error) {
	con.mu.Lock()
	if con.before == nil {
		con.mu.Unlock()
		return 0, errHungUp // it is no longer the agent's
	}
	first := !con.begun
	con.begun = true
	con.alternate.Write(p)
	con.mu.Unlock()
	// Not under the lock: a terminal that takes nothing must not keep leave from
	// putting it back.
	if first {
		con.out.WriteString(saveTitle)
	}
	return con.out.Write(p)
}

func (con *console) size() control.Size {
	cols, rows, err := term.GetSize(int(con.out.Fd()))
	if err != nil || cols <= 0 || rows <= 0 {
		return control.Size{Cols: 80, Rows: 24}
	}
	return control.Size{Cols: cols, Rows: rows}
}

func (con *console) read() {
	defer close(con.typed)
	for {
		buf := make([]byte, 4096)
		n, err := con.in.Read(buf)
		if n > 0 {
			select {
			case con.typed <- buf[:n]:
			case <-con.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (con *console) waitForSignals() {
	for {
		select {
		case s := <-con.signals:
			if s == syscall.SIGWINCH {
				select {
				case <-con.sizes: // an older one
				default:
				}
				con.sizes <- con.size()
				continue
			}
			why := errAskedToGo
			if s == syscall.SIGHUP {
				why = errHungUp
			}
			con.cancel(why)
			go con.insist()
		case <-con.closed:
			return
		}
	}
}

// insist ends a process that does not come to its end, as one whose terminal takes
// nothing.
func (con *console) insist() {
	select {
	case <-con.closed:
	case <-time.After(endWithin):
		con.leave(false)
		os.Exit(command.ExitInterrupted)
	}
}
