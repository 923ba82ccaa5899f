package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
)

var attachCommand = &cli.Command{
	Name: "attach", ArgsUsage: "NAME", Usage: "join an agent's terminal; " + control.DetachKey + " leaves it",
	UsageText: "atm attach bob\natm attach bob --read-only",
	Description: "Several terminals can attach and type; the agent's takes the size of the one resized last.\n" +
		"atm types no mail in while a line that you began is unsent.",
	Flags:  []cli.Flag{&cli.BoolFlag{Name: "read-only", Aliases: []string{"r"}, Usage: "only look; into a pipe, print the agent's bytes as they come"}},
	Action: attach,
}

var screenCommand = &cli.Command{
	Name: "screen", Aliases: []string{"capture", "peek", "capture-pane", "snapshot"}, ArgsUsage: "NAME", Usage: "print an agent's terminal as text",
	UsageText:   "atm screen bob\natm screen bob --last 200",
	Description: "--json: lines, cursor (from 0), title, state.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "print", Aliases: []string{"p"}, Hidden: true}, // as tmux has it
		&cli.BoolFlag{Name: "ansi", Aliases: []string{"e"}, Usage: "keep the colours"},
		cmdline.CountFlag("last", 0, "the last `N` lines, including scrollback", "the screen alone", "limit", "n", "tail"),
	},
	Action: onRunner("", screen),
}

const rawExample = `atm type NAME --raw '\e[A\r'`

var typeCommand = &cli.Command{
	Name: "type", Aliases: []string{"send-keys", "sendkeys", "send-key", "keys"}, ArgsUsage: "NAME [TEXT…]", Usage: "type into an agent's terminal, as a person would",
	UsageText: "atm type bob \"/compact\" --enter\natm type bob --raw '\\e[A\\r'\natm type bob --enter",
	Description: "The agent does not learn who typed and may ignore the text: to send mail, use atm send.\n" +
		"Text is refused while the agent asks something, since it might answer that (one key is not), and\n" +
		"while its input line may still hold mail. --raw types anyway.\n" +
		`--raw understands \e and Go's escapes: \r \n \t \b \\ \xHH \uHHHH.` + "\n" +
		"Without --enter the text stays in the input line, and atm types no mail in until it is gone.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "raw", Usage: "exactly these bytes: keys, escape sequences"},
		&cli.BoolFlag{Name: "enter", Aliases: []string{"e", "submit"}, Usage: "press return at the end"},
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
	if command.Terminal() {
		text = letter.EscapeBody(text)
	}
	shown := map[string]any{
		"agent": k.name(), "lines": append([]string{}, seen.Lines...), "title": seen.Title, "state": seen.State,
		"cursor": map[string]int{"x": seen.CursorX, "y": seen.CursorY},
	}
	if k.c.Bool("ansi") {
		shown["ansi"] = seen.ANSI
		text = strings.TrimRight(seen.ANSI, "\n")
	}
	return command.PrintAs(k.c, shown, text)
}

// typeText checks the text before it looks for the agent.
func typeText(c *cli.Context) (err error) {
	words, text := c.Args().Tail(), ""
	r := control.TypeRequest{Raw: c.Bool("raw"), Enter: c.Bool("enter")}
	if r.Raw {
		text, err = unescape(strings.Join(words, " "))
	} else if len(words) > 0 || !r.Enter {
		text, err = command.StdinText(c, words)
	}
	if err == nil && !r.Raw {
		err = checkNoKeys(text)
	}
	if err != nil {
		return err
	}
	r.Text = []byte(text)
	return onRunner("type into", func(ctx context.Context, k *call, client *control.Client) error {
		who, _ := k.s.Actor()
		r.By = string(who)
		o, err := client.Type(ctx, r)
		return k.print(resultOf(k.name(), o), err)
	})(c)
}

// keyNames are words that are probably meant as keys.
var keyNames = strings.Fields("enter return escape esc up down left right tab backspace c-c c-d c-m ctrl-c ctrl-d")

// checkNoKeys refuses a text that was probably meant as keys: the name of one, and control characters.
func checkNoKeys(text string) error {
	isKey := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\t", r) }
	if slices.Contains(keyNames, strings.ToLower(text)) || strings.ContainsFunc(text, isKey) {
		return failure.Usage("%q would be typed as text", text).
			WithHint("for return: atm type NAME --enter; for other keys: %s; to end a turn: atm interrupt NAME", rawExample)
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
	if !onTerminal() && (command.Terminal() || !isReadOnly) {
		return failure.Usage("attach needs a terminal").WithHint("atm screen %s", k.name())
	}
	if who, isAgent := k.s.Actor(); isAgent && who == k.name() {
		return failure.Refused("this is already the terminal of %s", who).WithHint("atm screen %s", who)
	}
	if err := k.s.MayAct("type into", k.name()); !isReadOnly && err != nil {
		return err
	}
	return k.s.AskRunner(c.Context, k.name(), func(client *control.Client) error {
		if !onTerminal() {
			return k.s.Follow(func(ctx context.Context) error {
				size := control.AttachRequest{Cols: 120, Rows: 30, ReadOnly: true}
				_, err := client.Attach(ctx, size, control.Terminal{Out: os.Stdout})
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

func onTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) && command.Terminal() }

// showTerminal attaches this terminal to the agent's until the user detaches or the program ends. If this terminal is
// closed, its error is silent, since nobody is left to read it.
func (k *call) showTerminal(client *control.Client) (end control.Ending, err error) {
	isReadOnly := k.c.Bool("read-only")
	format := "attached to %s; %s leaves it running"
	if isReadOnly {
		format = "watching %s; %s leaves"
	}
	command.Warn(k.c, format, k.name(), control.DetachKey)
	ctx, stop := signal.NotifyContext(k.c.Context, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	con, err := openConsole(os.Stdin, os.Stdout)
	if err != nil {
		return end, err
	}
	// If this process hangs, such as in a write to a stopped terminal, exit anyway.
	defer context.AfterFunc(ctx, func() {
		time.Sleep(endWithin)
		con.restore()
		os.Exit(failure.ExitInterrupted)
	})()
	defer con.close()
	command.Sleep(ctx, readingTime)
	size := con.size()
	end, err = client.Attach(ctx, control.AttachRequest{Cols: size.Cols, Rows: size.Rows, ReadOnly: isReadOnly},
		control.Terminal{In: con.input, Out: con.out, Sizes: con.sizes})
	con.hasExited = end.Exit != nil
	if con.hasExited || !end.TerminalGone && ctx.Err() == nil {
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
	return command.Print(k.c, r)
}

// A console is this terminal in raw mode while it shows an agent's. Defer close, so that a panic restores it too. Two
// goroutines, for the input and for new sizes, run until the process ends.
type console struct {
	out       *os.File
	input     chan []byte // closed at the end of the input
	sizes     chan control.Size
	restore   func() // restores the mode, once; never blocks
	hasExited bool   // the program has ended, and left the cursor below its output
}

// resetModes switches off the modes that a program may have switched on, restores the title of saveTitle, and leaves
// the alternate screen. On the main screen the last also moves the cursor to its saved position, so it is saved first.
const (
	saveTitle  = "\x1b[22;2t"
	resetModes = "\x1b[0m\x1b[?25h\x1b7\x1b[r\x1b8\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l" +
		"\x1b[?2004l\x1b[?1l\x1b>\x1b[?7h\x1b[<1u\x1b[>4m\x1b[23;2t\x1b7\x1b[?1049l"
	toBottom = "\x1b[999;1H\r\n"
)

func openConsole(in, out *os.File) (*console, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	con := &console{out: out, input: make(chan []byte), sizes: make(chan control.Size)}
	con.restore = sync.OnceFunc(func() { term.Restore(int(in.Fd()), before) })
	resizes := make(chan os.Signal, 1)
	signal.Notify(resizes, resized)
	out.WriteString(saveTitle)
	go con.read(in)
	go func() {
		for range resizes {
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
}

func (con *console) size() control.Size {
	cols, rows, _ := term.GetSize(int(con.out.Fd()))
	return control.Size{Cols: cmp.Or(cols, 80), Rows: cmp.Or(rows, 24)}
}

func (con *console) read(in *os.File) {
	defer close(con.input)
	for {
		buf := make([]byte, 4096)
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		con.input <- buf[:n]
	}
}
