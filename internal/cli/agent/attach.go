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
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
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
	defer client.Close()
	if onTerminal {
		end, err := showTerminal(c, box, client, false)
		if err != nil {
			return runnerError(s, box, err)
		}
		return printEnd(c, box, end)
	}
	return s.Follow(func(ctx context.Context) error {
		_, err := client.Attach(ctx, control.AttachRequest{Cols: 120, Rows: 30, ReadOnly: true}, control.Terminal{Out: os.Stdout})
		return cmp.Or(err, ctx.Err())
	})
}

// readingTime is how long the line that says how to leave stays before the agent's
// screen covers it.
const readingTime = 700 * time.Millisecond

// endWithin is how long this process may take to end by itself after a signal.
const endWithin = 2 * time.Second

// showTerminal shows the agent's terminal on this one until it is left or ends. Closing
// this terminal detaches or, for the owner, who has started the agent, ends the agent.
func showTerminal(c *cli.Context, box *mailbox.Box, client *control.Client, isOwner bool) (end control.Ending, err error) {
	readOnly := c.Bool("read-only")
	if readOnly {
		command.Warn(c, "looking at %s; %s leaves", box.Agent(), control.DetachKey)
	} else {
		command.Warn(c, "attached to %s; %s leaves it running", box.Agent(), control.DetachKey)
	}
	con, err := openConsole(c.Context, os.Stdin, os.Stdout)
	if err != nil {
		return end, err
	}
	defer con.close()
	sleep(con.ctx, readingTime)
	size := con.size()
	end, err = client.Attach(con.ctx, control.AttachRequest{Cols: size.Cols, Rows: size.Rows, ReadOnly: readOnly},
		control.Terminal{In: con.typed, Out: con.out, Sizes: con.sizes})
	con.hasExited = end.Exit != nil
	if con.hasExited || !end.Gone && con.ctx.Err() == nil {
		return end, err
	}
	if isOwner { // nobody is left to be told how that goes; the runner, once asked, ends it
		ctx, cancel := context.WithTimeout(context.Background(), endWithin/2)
		defer cancel()
		askToStop(ctx, box)
	}
	return end, command.Exit(command.ExitInterrupted)
}

func printEnd(c *cli.Context, box *mailbox.Box, end control.Ending) error {
	name := box.Agent()
	if end.Exit == nil && !end.Detached {
		return command.Failed("the runner of %s ended the attachment: %s", name, end.Reason).WithHint("atm attach %s", name)
	}
	r := memberResult{Name: name, State: "detached", Detail: fmt.Sprintf("it goes on: atm attach %s", name)}
	if end.Exit != nil {
		r.State, r.Detail = "ended", cmp.Or(end.Exit.Signal, fmt.Sprintf("exit %d", end.Exit.Code))
	}
	return command.Print(c, r)
}

// A console is this terminal while it shows an agent's. It is put back as it was when
// the agent ends, on an error, a panic of the goroutine that opened it (which defers
// close), a signal, and also where it takes nothing more. Only kill -9 leaves it raw.
//
// Two goroutines: one reads what is typed until the process ends, one waits for
// signals until close.
type console struct {
	out       *os.File
	typed     chan []byte // closed when the terminal has gone
	sizes     chan control.Size
	signals   chan os.Signal
	restore   func() // puts its settings back, once; never waits
	hasExited bool   // the program has ended, and left the cursor below its output

	ctx    context.Context // ends with a signal that asks for that
	cancel context.CancelFunc
}

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
	con := &console{out: out, typed: make(chan []byte), sizes: make(chan control.Size, 1), signals: make(chan os.Signal, 8)}
	con.restore = sync.OnceFunc(func() { term.Restore(int(in.Fd()), before) })
	con.ctx, con.cancel = context.WithCancel(ctx)
	signal.Notify(con.signals, resized, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	out.WriteString(saveTitle)
	go con.read(in)
	go con.waitForSignals()
	return con, nil
}

// close puts the terminal back.
func (con *console) close() {
	con.restore()
	con.out.WriteString(resetModes)
	if !con.hasExited {
		con.out.WriteString(toBottom)
	}
	signal.Stop(con.signals)
	close(con.signals)
	con.cancel()
}

func (con *console) size() control.Size {
	cols, rows, err := term.GetSize(int(con.out.Fd()))
	if err != nil || cols <= 0 || rows <= 0 {
		return control.Size{Cols: 80, Rows: 24}
	}
	return control.Size{Cols: cols, Rows: rows}
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

func (con *console) waitForSignals() {
	for s := range con.signals {
		if s == resized {
			con.sizes <- con.size()
			continue
		}
		con.cancel()
		// A process that does not come to its end, as one whose terminal takes nothing,
		// is ended.
		time.AfterFunc(endWithin, func() {
			con.restore()
			os.Exit(command.ExitInterrupted)
		})
	}
}
