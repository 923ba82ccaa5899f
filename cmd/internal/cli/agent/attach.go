package agent

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/policy"
)

var attachCommand = &cli.Command{
	Name: "attach", Category: "attach-session join enter\n--t    atm attach VALUE", ArgsUsage: "NAME", Usage: "join an agent's terminal; " + control.DetachKey + " leaves it",
	UsageText: `atm attach bob
atm attach bob --read-only`,
	Description: `Several terminals can attach and type; the agent's takes the size of the one resized last.
atm types no mail in while a line that you began is unsent.
An agent that speaks ACP has no terminal: you only watch what it does.`,
	Flags:  []cli.Flag{&cli.BoolFlag{Name: "read-only", Aliases: []string{"r"}, Category: "readonly", Usage: "only look; into a pipe, print the agent's bytes as they come"}},
	Action: attach,
}

func attach(c *cli.Context) error {
	k, err := openAgent(c)
	if err != nil {
		return err
	}
	isReadOnly := c.Bool("read-only")
	if !k.onTerminal() && (k.p.IsTerminal() || !isReadOnly) {
		return failure.Usage("attach needs a terminal").WithHint("`atm screen %s`", k.name())
	}
	if k.p.IsJSON && !k.onTerminal() {
		return failure.Usage("attach --read-only prints the bytes of a terminal, which are no JSON").
			WithHint("`atm screen %[1]s --json`; for what happens: `atm events %[1]s --follow --json`", k.name())
	}
	if (k.s.Actor() == policy.Actor{Name: k.name(), IsAgent: true}) {
		return failure.Refused("this is already the terminal of %s", k.name()).WithHint("`atm screen %s`", k.name())
	}
	if err := k.s.MayAct(policy.Type, k.name()); !isReadOnly && err != nil {
		return err
	}
	return k.s.AskRunner(c.Context, k.name(), func(client *control.Client) error {
		if !k.onTerminal() {
			return k.s.Follow(func(ctx context.Context) error {
				size := control.AttachRequest{Cols: 120, Rows: 30, ReadOnly: true}
				_, err := client.Attach(ctx, size, control.Terminal{Out: k.p.Out})
				return cmp.Or(err, ctx.Err())
			})
		}
		status, err := client.Status(c.Context)
		if err != nil {
			return err
		}
		end, err := k.showTerminal(c.Context, client, isReadOnly, status.NoTerminal)
		if err != nil {
			return err
		}
		return k.printEnd(end)
	})
}

func (k *call) onTerminal() bool { return output.IsTerminal(k.p.In) && k.p.IsTerminal() }

// showTerminal attaches this terminal to the agent's until the user detaches or the program ends. If this terminal is
// closed, its error is silent, since nobody is left to read it. What an agent without a terminal does is only shown.
func (k *call) showTerminal(ctx context.Context, client *control.Client, isReadOnly, hasNone bool) (end control.Ending, err error) {
	format := "attached to %s; %s leaves it running"
	switch {
	case hasNone:
		isReadOnly, format = true, "watching %s, which has no terminal: atm send, approve, interrupt; %s leaves it running"
	case isReadOnly:
		format = "watching %s; %s leaves"
	}
	k.p.Warn(format, k.name(), control.DetachKey)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	terminal, leaveRaw, restore, err := openTerminal(k.p.In, k.p.Out)
	if err != nil {
		return end, err
	}
	// If this process hangs, such as in a write to a stopped terminal, exit anyway.
	defer context.AfterFunc(ctx, func() {
		time.Sleep(endWithin)
		leaveRaw()
		os.Exit(failure.ExitInterrupted)
	})()
	defer restore()
	app.Sleep(ctx, readingTime)
	size := sizeOf(k.p.Out)
	end, err = client.Attach(ctx, control.AttachRequest{Cols: size.Cols, Rows: size.Rows, ReadOnly: isReadOnly}, terminal)
	if end.Exit != nil || !end.TerminalGone && ctx.Err() == nil {
		return end, err
	}
	return end, failure.Exit(failure.ExitInterrupted)
}

func (k *call) printEnd(end control.Ending) error {
	r := result{Name: k.name(), State: "detached", Detail: k.p.Say("still running: `atm attach %s`", k.name())}
	if end.Exit != nil {
		r.State, r.Detail = "ended", cmp.Or(end.Exit.Signal, fmt.Sprintf("exit %d", end.Exit.Code))
	} else if !end.Detached {
		return failure.Failed("the runner of %s detached this terminal: %s", k.name(), end.Reason).WithHint("`atm attach %s`", k.name())
	}
	return k.p.Confirming().Print(r)
}

// resetModes switches off the modes and links that a program may have switched on, restores the title of saveTitle, leaves
// the alternate screen, and moves the cursor to the bottom. On the main screen leaving also moves the cursor to its saved
// position, so it is saved first.
const (
	saveTitle  = "\x1b[22;2t"
	resetModes = "\x1b[0m\x1b[?25h\x1b7\x1b[r\x1b8\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l" +
		"\x1b]8;;\x1b\\\x1b(B\x0f\x1b[4l\x1b[0 q\x1b[?5l\x1b[?9l\x1b[?6l\x1b[?1007l\x1b[?1016l\x1b[?2026l\x1b[?2031l" +
		"\x1b[?2004l\x1b[?1l\x1b>\x1b[?7h\x1b[<9u\x1b[>4m\x1b[23;2t\x1b7\x1b[?1049l\x1b[<9u\x1b[999;1H\r\n"
)

// openTerminal puts this terminal into raw mode to show an agent's. Defer restore, so that a panic restores it too;
// leaveRaw never blocks. Two goroutines, for the input and for new sizes, run until the process ends.
func openTerminal(in io.Reader, out io.Writer) (t control.Terminal, leaveRaw, restore func(), err error) {
	leaveRaw, err = output.MakeRaw(in)
	if err != nil {
		return t, nil, nil, err
	}
	io.WriteString(out, saveTitle)
	input, sizes, resizes := make(chan []byte), make(chan control.Size), make(chan os.Signal, 1)
	signal.Notify(resizes, resized)
	go func() {
		for range resizes {
			sizes <- sizeOf(out)
		}
	}()
	go func() {
		defer close(input)
		for {
			buf := make([]byte, 4096)
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			input <- buf[:n]
		}
	}()
	return control.Terminal{In: input, Out: out, Sizes: sizes}, leaveRaw, func() {
		leaveRaw()
		io.WriteString(out, resetModes)
	}, nil
}

func sizeOf(terminal io.Writer) control.Size {
	cols, rows, _ := output.Size(terminal)
	return control.Size{Cols: cmp.Or(cols, 80), Rows: cmp.Or(rows, 24)}
}
