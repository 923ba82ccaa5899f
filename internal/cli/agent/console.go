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
	in, out   *os.File
	typed     chan []byte // closed when the terminal has gone
	sizes     chan control.Size
	signals   chan os.Signal
	restore   func() // puts its settings back, once; never waits
	isWritten bool   // something was shown on it
	hasExited bool   // the program has ended, and left the cursor below its output

	ctx    context.Context // ends with a signal that asks for that
	cancel context.CancelFunc
}

// endWithin is how long this process may take to end by itself after a signal.
const endWithin = 2 * time.Second

// Leaving a terminal: what a program may have switched on is switched off, the
// alternate screen left, and the title put back that saveTitle has kept. Outside of
// the alternate screen leaving it moves the cursor to where it was saved: here.
const (
	saveTitle  = "\x1b[22;2t"
	resetModes = "\x1b[0m\x1b[?25h\x1b7\x1b[r\x1b8\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l" +
		"\x1b[?2004l\x1b[?1l\x1b>\x1b[?7h\x1b[<1u\x1b[>4m\x1b[23;2t\x1b7\x1b[?1049l"
	toBottom = "\x1b[999;1H\r\n"
)

// openConsole takes hold of the terminal, which is raw until close.
func openConsole(ctx context.Context, in, out *os.File) (*console, error) {
	output.IgnoreSIGPIPE()
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	con := &console{in: in, out: out, typed: make(chan []byte), sizes: make(chan control.Size, 1), signals: make(chan os.Signal, 8)}
	con.restore = sync.OnceFunc(func() { term.Restore(int(in.Fd()), before) })
	con.ctx, con.cancel = context.WithCancel(ctx)
	signal.Notify(con.signals, resized, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	go con.read()
	go con.waitForSignals()
	return con, nil
}

// close puts the terminal back.
func (con *console) close() {
	con.restore()
	if con.isWritten {
		con.out.WriteString(resetModes)
	}
	if con.isWritten && !con.hasExited {
		con.out.WriteString(toBottom)
	}
	signal.Stop(con.signals)
	close(con.signals)
	con.cancel()
}

// Write shows output of the agent.
func (con *console) Write(p []byte) (int, error) {
	if !con.isWritten {
		con.isWritten = true
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
		if err != nil {
			return
		}
		select {
		case con.typed <- buf[:n]:
		case <-con.ctx.Done():
			return
		}
	}
}

func (con *console) waitForSignals() {
	for s := range con.signals {
		if s != resized {
			// A process that does not come to its end, as one whose terminal takes
			// nothing, is ended.
			time.AfterFunc(endWithin, func() {
				con.restore()
				os.Exit(command.ExitInterrupted)
			})
			con.cancel()
			continue
		}
		select {
		case <-con.sizes: // an older one
		default:
		}
		con.sizes <- con.size()
	}
}
