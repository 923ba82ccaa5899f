package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
)

var attachCommand = &cli.Command{
	Name: "attach", Aliases: []string{"join"}, ArgsUsage: "NAME", Usage: "join an agent's terminal; " + control.DetachKey + " leaves it",
	UsageText: "atm attach bob\natm attach bob --read-only",
	Description: "Several terminals may; both can type, and the agent's is as large as the one resized last.\n" +
		"While a line that you began is not sent, no mail is typed in.",
	Flags:  []cli.Flag{&cli.BoolFlag{Name: "read-only", Usage: "look only; into a pipe: the agent's bytes as they come"}},
	Action: attach,
}

func attach(c *cli.Context) error {
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	readOnly := c.Bool("read-only")
	onTerminal := term.IsTerminal(int(os.Stdin.Fd())) && command.Terminal()
	if !onTerminal && !(readOnly && !command.Terminal()) {
		return command.Usage("attach needs a terminal").WithHint("atm screen %s", box.Agent())
	}
	if who, isAgent := s.Actor(); isAgent && who == box.Agent() {
		return command.Refused("this is the terminal of %s already", who).WithHint("atm screen %s", who)
	}
	if !readOnly {
		if err := s.MayAct("type into", box.Agent()); err != nil {
			return err
		}
	}
	client, err := dial(c.Context, box)
	if err != nil {
		return runnerError(s, box, err)
	}
	a := &attachment{c: c, scope: s, box: box, readOnly: readOnly}
	if onTerminal {
		end, err := a.follow(client)
		if err != nil {
			return err
		}
		return a.printEnd(end)
	}
	defer client.Close()
	return s.Follow(func(ctx context.Context) error {
		_, err := client.Attach(ctx, control.AttachRequest{Cols: 120, Rows: 30, ReadOnly: true}, control.Terminal{Out: os.Stdout})
		if err != nil {
			return runnerError(s, box, err)
		}
		return ctx.Err()
	})
}

// An attachment is an agent's terminal shown on this one.
type attachment struct {
	c        *cli.Context
	scope    *command.Scope
	box      *mailbox.Box
	readOnly bool
	isOwner  bool // this process started the agent: what ends it ends the agent
}

// readingTime is how long the line that says how to leave stays before the agent's
// screen covers it.
const readingTime = 700 * time.Millisecond

// follow shows the agent's terminal on this one until it is left or ends, and
// closes the client. Closing this terminal detaches or, for the owner, ends the
// agent.
func (a *attachment) follow(client *control.Client) (end control.Ending, err error) {
	defer client.Close()
	if a.readOnly {
		command.Warn(a.c, "looking at %s; %s leaves", a.box.Agent(), control.DetachKey)
	} else {
		command.Warn(a.c, "attached to %s; %s leaves it running", a.box.Agent(), control.DetachKey)
	}
	con, err := openConsole(a.c.Context, os.Stdin, os.Stdout)
	if err != nil {
		return end, err
	}
	defer con.close()
	sleep(con.ctx, readingTime)
	size := con.size()
	end, err = client.Attach(con.ctx, control.AttachRequest{Cols: size.Cols, Rows: size.Rows, ReadOnly: a.readOnly},
		control.Terminal{In: con.typed, Out: con, Sizes: con.sizes})
	con.hasExited = end.Exit != nil
	if con.hasExited {
		return end, nil
	}
	if end.Gone || con.ctx.Err() != nil { // the terminal was closed, or a signal came
		if a.isOwner {
			// Nobody is left to be told how that went; the runner, once asked, ends it.
			ctx, cancel := context.WithTimeout(context.Background(), endWithin/2)
			defer cancel()
			askToStop(ctx, a.box)
		}
		return end, command.Exit(command.ExitInterrupted)
	}
	if err != nil {
		return end, runnerError(a.scope, a.box, err)
	}
	return end, nil
}

func (a *attachment) printEnd(end control.Ending) error {
	name := a.box.Agent()
	if end.Exit == nil && !end.Detached {
		return command.Failed("the runner of %s ended the attachment: %s", name, end.Reason).WithHint("atm attach %s", name)
	}
	r := memberResult{Name: name, State: "detached", Detail: fmt.Sprintf("it goes on: atm attach %s", name)}
	if end.Exit != nil {
		r.State, r.Detail = "ended", cmp.Or(end.Exit.Signal, fmt.Sprintf("exit %d", end.Exit.Code))
	}
	return command.Print(a.c, r)
}

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
