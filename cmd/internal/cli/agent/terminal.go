package agent

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
)

var attachCommand = &cli.Command{
	Name: "attach", ArgsUsage: "NAME", Usage: "join an agent's terminal; " + control.DetachKey + " leaves it",
	UsageText: `atm attach bob
atm attach bob --read-only`,
	Description: `Several terminals can attach and type; the agent's takes the size of the one resized last.
atm types no mail in while a line that you began is unsent.`,
	Flags:  []cli.Flag{&cli.BoolFlag{Name: "read-only", Aliases: []string{"r", "readonly"}, Usage: "only look; into a pipe, print the agent's bytes as they come"}},
	Action: attach,
}

var screenCommand = &cli.Command{
	Name: "screen", Aliases: []string{"capture", "capture-pane", "screenshot"}, ArgsUsage: "NAME", Usage: "print an agent's terminal as text",
	UsageText: `atm screen bob
atm screen bob --last 200`,
	Description: "--json: lines, cursor (from 0), title, state.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "ansi", Aliases: []string{"e"}, Usage: "keep the colours"},
		cmdline.CountFlag("last", 0, "the last `N` lines, including scrollback", "the screen alone", "n", "lines", "tail"),
		cmdline.NoFlag("watch follow w f", "atm attach NAME --read-only"),
		cmdline.NoFlag("print p", "leave it out: atm screen NAME prints the screen"),
	},
	Action: onRunner("", screen),
}

const rawExample = `atm type NAME --raw '\e[A\r'`

var typeCommand = &cli.Command{
	Name: "type", Aliases: []string{"send-keys"}, ArgsUsage: "NAME [TEXT…]", Usage: "type into an agent's terminal, as a person would",
	UsageText: `atm type bob "/compact" --enter
atm type bob --raw '\e[A\r'
atm type bob --enter`,
	Description: `The agent does not learn who typed and may ignore the text: to send mail, use atm send.
Text is refused while the agent asks something, since it might answer that (one key is not), and
while its input line may still hold mail. --raw types anyway.
--raw understands \e and Go's escapes: \r \n \t \b \\ \xHH \uHHHH.
Without --enter the text stays in the input line, and atm types no mail in until it is gone.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "raw", Usage: "exactly these bytes: keys, escape sequences"},
		&cli.BoolFlag{Name: "enter", Aliases: []string{"submit"}, Usage: "press return at the end"},
	},
	Action: typeText,
}

// screen prints the agent's terminal without the blank lines at its end.
func screen(ctx context.Context, k *call, client *control.Client) error {
	seen, err := client.Screen(ctx, control.ScreenRequest{ANSI: k.c.Bool("ansi"), Last: k.c.Int("last")})
	if err != nil {
		return err
	}
	text := strings.TrimRight(strings.Join(seen.Lines, "\n"), " \n")
	if command.PrinterOf(k.c).IsTerminal() {
		text = letter.Reveal(text)
	}
	shown := map[string]any{
		"agent": k.name(), "lines": append([]string{}, seen.Lines...), "title": seen.Title, "state": seen.State,
		"cursor": map[string]int{"x": seen.CursorX, "y": seen.CursorY},
	}
	if k.c.Bool("ansi") {
		shown["ansi"] = seen.ANSI
		text = strings.TrimRight(seen.ANSI, "\n")
	}
	return command.PrinterOf(k.c).PrintAs(shown, text)
}

// typeText checks the text before it looks for the agent.
func typeText(c *cli.Context) (err error) {
	words, text := c.Args().Tail(), ""
	r := control.TypeRequest{Raw: c.Bool("raw"), Enter: c.Bool("enter")}
	if r.Raw {
		text, err = unescape(strings.Join(words, " "))
	} else if len(words) > 0 || !r.Enter {
		text, err = command.MessageText(c, words)
	}
	if err == nil && !r.Raw {
		err = checkNoKeys(c.Args().First(), words, text)
	}
	if err != nil {
		return err
	}
	r.Text = []byte(text)
	return onRunner("type into", func(ctx context.Context, k *call, client *control.Client) error {
		who, _ := k.s.Actor()
		r.By = string(who)
		o, err := client.Type(ctx, r)
		done := resultOf(k.name(), o)
		if o.NotSubmitted {
			left := fmt.Sprintf("not submitted: atm type %s --enter", k.name())
			done.Detail = app.JoinFilled(", ", done.Detail, command.Given(k.c).CompleteHint(left))
		}
		return k.print(done, err)
	})(c)
}

// keyNames maps names of keys, most of them tmux's, in lower case, to the flags that type them.
var keyNames = map[string]string{
	"enter": "--enter", "return": "--enter", "c-m": "--enter", "escape": `--raw '\e'`, "esc": `--raw '\e'`,
	"up": `--raw '\e[A'`, "down": `--raw '\e[B'`, "right": `--raw '\e[C'`, "left": `--raw '\e[D'`,
	"tab": `--raw '\t'`, "c-c": `--raw '\x03'`, "ctrl-c": `--raw '\x03'`, "c-d": `--raw '\x04'`,
}

// checkNoKeys refuses a text that was probably meant as keys: the name of one as the only word or, written as tmux
// has it, as the last; and control characters.
func checkNoKeys(name string, words []string, text string) error {
	last := strings.Join(words[max(0, len(words)-1):], "")
	key, isUpper := keyNames[strings.ToLower(last)], last != strings.ToLower(last)
	isControl := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\t", r) }
	if key != "" && (isUpper || len(words) == 1) {
		return failure.Usage("%q would be typed as a word", last).WithHint("atm type %s %s; to end a turn: atm interrupt %[1]s", name, key)
	} else if strings.ContainsFunc(text, isControl) {
		return failure.Usage("the text has control characters").WithHint(rawExample)
	}
	return nil
}

// goEscapes turns a text with our escapes into the inside of a Go string.
var goEscapes = strings.NewReplacer(`\\`, `\\`, `\e`, `\x1b`, `"`, `\"`, "\n", `\n`)

// unescape decodes the escapes of --raw. It refuses any other, so that a misspelt key is not typed as text.
func unescape(s string) (string, error) {
	text, err := strconv.Unquote(`"` + goEscapes.Replace(s) + `"`)
	if err != nil || text == "" {
		return "", failure.Usage("--raw needs text with escapes that it understands, not %q", s).WithHint(rawExample)
	}
	return text, nil
}

func attach(c *cli.Context) error {
	k, err := openAgent(c)
	if err != nil {
		return err
	}
	isReadOnly := c.Bool("read-only")
	if !onTerminal(command.PrinterOf(c)) && (command.PrinterOf(c).IsTerminal() || !isReadOnly) {
		return failure.Usage("attach needs a terminal").WithHint("atm screen %s", k.name())
	}
	if c.Bool("json") && !onTerminal(command.PrinterOf(c)) {
		return failure.Usage("attach --read-only prints the bytes of a terminal, which are no JSON").
			WithHint("atm screen %[1]s --json; for what happens: atm events %[1]s --follow --json", k.name())
	}
	if who, isAgent := k.s.Actor(); isAgent && who == k.name() {
		return failure.Refused("this is already the terminal of %s", who).WithHint("atm screen %s", who)
	}
	if err := k.s.MayAct("type into", k.name()); !isReadOnly && err != nil {
		return err
	}
	return k.s.AskRunner(c.Context, k.name(), func(client *control.Client) error {
		if !onTerminal(command.PrinterOf(c)) {
			return k.s.Follow(func(ctx context.Context) error {
				size := control.AttachRequest{Cols: 120, Rows: 30, ReadOnly: true}
				_, err := client.Attach(ctx, size, control.Terminal{Out: c.App.Writer})
				return cmp.Or(err, ctx.Err())
			})
		}
		end, err := k.showTerminal(client)
		if err != nil {
			return err
		}
		return k.printEnd(end)
	})
}

func onTerminal(p *command.Printer) bool { return output.IsTerminal(p.In) && p.IsTerminal() }

// showTerminal attaches this terminal to the agent's until the user detaches or the program ends. If this terminal is
// closed, its error is silent, since nobody is left to read it.
func (k *call) showTerminal(client *control.Client) (end control.Ending, err error) {
	isReadOnly := k.c.Bool("read-only")
	format := "attached to %s; %s leaves it running"
	if isReadOnly {
		format = "watching %s; %s leaves"
	}
	command.PrinterOf(k.c).Warn(format, k.name(), control.DetachKey)
	ctx, stop := signal.NotifyContext(k.c.Context, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	terminal, leaveRaw, restore, err := openTerminal(k.c.App.Reader, k.c.App.Writer)
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
	size := sizeOf(k.c.App.Writer)
	end, err = client.Attach(ctx, control.AttachRequest{Cols: size.Cols, Rows: size.Rows, ReadOnly: isReadOnly, Status: true}, terminal)
	if end.Exit != nil || !end.TerminalGone && ctx.Err() == nil {
		return end, err
	}
	return end, failure.Exit(failure.ExitInterrupted)
}

func (k *call) printEnd(end control.Ending) error {
	r := result{Name: k.name(), State: "detached", Detail: fmt.Sprintf("still running: atm attach %s", k.name())}
	if end.Exit != nil {
		r.State, r.Detail = "ended", cmp.Or(end.Exit.Signal, fmt.Sprintf("exit %d", end.Exit.Code))
	} else if !end.Detached {
		return failure.Failed("the runner of %s detached this terminal: %s", k.name(), end.Reason).WithHint("atm attach %s", k.name())
	}
	return command.PrinterOf(k.c).Print(r)
}

// resetModes clears what a program declared of its state, switches off the modes and links that it may have switched on,
// restores the title of saveTitle, leaves the alternate screen, and moves the cursor to the bottom. On the main screen leaving
// also moves the cursor to its saved position, so it is saved first.
const (
	saveTitle  = "\x1b[22;2t"
	resetModes = "\x1b]7501;state=clear\x07\x1b[0m\x1b[?25h\x1b7\x1b[r\x1b8\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l" +
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
