package agent

import (
	"cmp"
	"os"
	"os/signal"
	"sync"

	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/ptyrun/control"
	"golang.org/x/term"
)

// A console is this terminal while it shows an agent's: raw until close, which also a panic of the goroutine that
// opened it calls. One goroutine reads what is typed until the process ends, one waits for new sizes until close.
type console struct {
	out       *os.File
	typed     chan []byte // closed when the terminal has gone
	sizes     chan control.Size
	resizes   chan os.Signal
	restore   func() // puts its settings back, once; never waits
	hasExited bool   // the program has ended, and left the cursor below its output
}

// Leaving a terminal: what a program may have switched on is switched off, the alternate screen left, and
// the title put back that saveTitle has kept. Outside of the alternate screen leaving it moves the cursor
// to where it was saved: here.
const (
	saveTitle  = "\x1b[22;2t"
	resetModes = "\x1b[0m\x1b[?25h\x1b7\x1b[r\x1b8\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l" +
		"\x1b[?2004l\x1b[?1l\x1b>\x1b[?7h\x1b[<1u\x1b[>4m\x1b[23;2t\x1b7\x1b[?1049l"
	toBottom = "\x1b[999;1H\r\n"
)

func openConsole(in, out *os.File) (*console, error) {
	output.IgnoreSIGPIPE()
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	con := &console{out: out, typed: make(chan []byte), sizes: make(chan control.Size, 1), resizes: make(chan os.Signal, 1)}
	con.restore = sync.OnceFunc(func() { term.Restore(int(in.Fd()), before) })
	signal.Notify(con.resizes, resized)
	out.WriteString(saveTitle)
	go con.read(in)
	go func() {
		for range con.resizes {
			con.sizes <- con.size()
		}
	}()
	return con, nil
}

func (con *console) close() {
	con.restore()
	con.out.WriteString(resetModes)
	if !con.hasExited {
		con.out.WriteString(toBottom)
	}
	signal.Stop(con.resizes)
	close(con.resizes)
}

func (con *console) size() control.Size {
	cols, rows, _ := term.GetSize(int(con.out.Fd()))
	return control.Size{Cols: cmp.Or(cols, 80), Rows: cmp.Or(rows, 24)}
}

func (con *console) read(in *os.File) {
	defer close(con.typed)
	for {
		buf := make([]byte, 4096)
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		con.typed <- buf[:n]
	}
}
