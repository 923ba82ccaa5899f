package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

var attachCommand = &cli.Command{
	Name: "attach", ArgsUsage: "NAME", Usage: "join an agent's terminal; " + control.DetachKey + " leaves it",
	UsageText: "atm attach bob\natm attach bob --read-only",
	Description: "Several terminals may; both can type, and the agent's is as large as the one resized last.\n" +
		"While a line that you began is not sent, no mail is typed in.",
	Flags:  []cli.Flag{&cli.BoolFlag{Name: "read-only", Usage: "look only; into a pipe: the agent's bytes as they come"}},
	Action: attach,
}

var screenCommand = &cli.Command{
	Name: "screen", Aliases: []string{"capture", "peek", "capture-pane", "snapshot"}, ArgsUsage: "NAME", Usage: "what an agent's terminal shows, as text",
	UsageText:   "atm screen bob\natm screen bob --last 200",
	Description: "--json: lines, cursor (from 0), title, state.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "print", Aliases: []string{"p"}, Hidden: true}, // as tmux has it
		&cli.BoolFlag{Name: "ansi", Aliases: []string{"e"}, Usage: "with colours, as the agent wrote them"},
		command.CountFlag("last", 0, "the last `N` lines, also of what scrolled away", "what it shows", "limit", "n", "tail"),
	},
	Action: onRunner("", screen),
}

const rawExample = `atm type NAME --raw '\e[A\r'`

var typeCommand = &cli.Command{
	Name: "type", Aliases: []string{"send-keys", "keys"}, ArgsUsage: "NAME [TEXT…]", Usage: "type into an agent's terminal, as a person would",
	UsageText: "atm type bob \"/compact\" --enter\natm type bob --raw '\\e[A\\r'\natm type bob --enter",
	Description: "The agent is not told who typed, and nothing says that it took it: mail is atm send.\n" +
		"While an agent asks something a text is refused, whose keys might answer it: one key, or --raw.\n" +
		"So is one while mail that it has not taken may stand in its input line: --raw.\n" +
		`--raw knows \e and the escapes of Go: \r \n \t \b \\ \xHH \uHHHH.` + "\n" +
		"Without --enter the text stays in the input line, and no mail is typed in until it is gone.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "raw", Usage: "these bytes and no others: keys, escape sequences"},
		&cli.BoolFlag{Name: "enter", Aliases: []string{"e"}, Usage: "and then the return key"},
	},
	Action: typeText,
}

type shownScreen struct {
	Agent  wire.Name      `json:"agent"`
	Lines  []string       `json:"lines"`
	Cursor map[string]int `json:"cursor"`
	Title  string         `json:"title"`
	State  string         `json:"state"`
	ANSI   string         `json:"ansi,omitempty"`
}

// screen shows the agent's terminal to where the last text ends.
func screen(ctx context.Context, k *call, client *control.Client) error {
	seen, err := client.Screen(ctx, control.ScreenRequest{ANSI: k.c.Bool("ansi"), Last: k.c.Int("last")})
	text := strings.TrimRight(strings.Join(seen.Lines, "\n"), " \n")
	if command.Terminal() {
		text = letter.EscapeBody(text)
	}
	if !k.c.Bool("ansi") {
		seen.ANSI = ""
	} else if seen.ANSI != "" {
		text = strings.TrimRight(seen.ANSI, "\n")
	}
	cursor := map[string]int{"x": seen.CursorX, "y": seen.CursorY}
	shown := shownScreen{k.name(), append([]string{}, seen.Lines...), cursor, seen.Title, seen.State, seen.ANSI}
	return command.Done(k.c, err, shown, text)
}

// keyNames are what tmux calls keys, and how they are typed here.
var keyNames = map[string]string{
	"Enter": "--enter", "C-m": "--enter", "Escape": `--raw '\e'`, "BSpace": `--raw '\x7f'`,
	"C-c": `--raw '\x03'`, "C-d": `--raw '\x04'`, "C-u": `--raw '\x15'`,
}

// typeText reads the text first: a wrong one is refused whoever the agent is.
func typeText(c *cli.Context) (err error) {
	words, text := c.Args().Tail(), ""
	r := control.TypeRequest{Raw: c.Bool("raw"), Enter: c.Bool("enter")}
	if r.Raw {
		text, err = unescape(strings.Join(words, " "))
	} else if len(words) > 0 || !r.Enter {
		text, err = command.StdinText(c, words)
	}
	if err != nil {
		return err
	}
	if n := len(words) - 1; !r.Raw && n >= 0 && keyNames[words[n]] != "" {
		return command.Usage("%q would be typed as a word", words[n]).WithHint("that key: atm type %s %s; the return key: --enter; "+
			"a turn is broken off by atm interrupt %[1]s; a text can come from a pipe", c.Args().First(), keyNames[words[n]])
	}
	isKey := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\t", r) }
	if !r.Raw && strings.ContainsFunc(text, isKey) {
		return command.Usage("the text has control characters").WithHint("keys and escape sequences: " + rawExample)
	}
	r.Text = []byte(text)
	return onRunner("type into", func(ctx context.Context, k *call, client *control.Client) error {
		who, _ := k.s.Actor()
		r.By = string(who)
		return k.printOutcome(client.Type(ctx, r))
	})(c)
}

// forGo writes a text with our escapes as the inside of a Go string.
var forGo = strings.NewReplacer(`\\`, `\\`, `\e`, `\x1b`, `"`, `\"`, "\n", `\n`)

// unescape undoes the escapes that --raw knows. Any other is an error: a misspelt key is not to be typed as
// a backslash and a letter.
func unescape(s string) (string, error) {
	text, err := strconv.Unquote(`"` + forGo.Replace(s) + `"`)
	if err != nil || text == "" {
		return "", command.Usage("--raw needs a text with escapes that it knows, not %q", s).WithHint(rawExample)
	}
	return text, nil
}

func attach(c *cli.Context) error {
	k, err := open(c)
	if err != nil {
		return err
	}
	isReadOnly := c.Bool("read-only")
	onTerminal := term.IsTerminal(int(os.Stdin.Fd())) && command.Terminal()
	if !onTerminal && (command.Terminal() || !isReadOnly) {
		return command.Usage("attach needs a terminal").WithHint("atm screen %s", k.name())
	}
	if who, isAgent := k.s.Actor(); isAgent && who == k.name() {
		return command.Refused("this is the terminal of %s already", who).WithHint("atm screen %s", who)
	}
	if err := k.s.MayAct("type into", k.name()); !isReadOnly && err != nil {
		return err
	}
	return k.s.AskRunner(c.Context, k.name(), func(client *control.Client) error {
		if !onTerminal {
			return k.s.Follow(func(ctx context.Context) error {
				size := control.AttachRequest{Cols: 120, Rows: 30, ReadOnly: true}
				_, err := client.Attach(ctx, size, control.Terminal{Out: os.Stdout})
				return cmp.Or(err, ctx.Err())
			})
		}
		end, err := k.showTerminal(client, false)
		if err != nil {
			return err
		}
		return k.printEnd(end)
	})
}

// showTerminal shows the agent's terminal on this one until it is left or ends. Closing this terminal
// detaches or, for the owner, who has started the agent, ends the agent.
func (k *call) showTerminal(client *control.Client, isOwner bool) (end control.Ending, err error) {
	isReadOnly := k.c.Bool("read-only")
	said := "attached to %s; %s leaves it running"
	if isReadOnly {
		said = "looking at %s; %s leaves"
	}
	command.Warn(k.c, said, k.name(), control.DetachKey)
	ctx, stop := signal.NotifyContext(k.c.Context, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	con, err := openConsole(os.Stdin, os.Stdout)
	if err != nil {
		return end, err
	}
	// A process that does not come to its end, as one whose terminal takes nothing, is ended.
	defer context.AfterFunc(ctx, func() {
		time.Sleep(endWithin)
		con.restore()
		os.Exit(command.ExitInterrupted)
	})()
	defer con.close()
	command.Sleep(ctx, readingTime)
	size := con.size()
	end, err = client.Attach(ctx, control.AttachRequest{Cols: size.Cols, Rows: size.Rows, ReadOnly: isReadOnly},
		control.Terminal{In: con.typed, Out: con.out, Sizes: con.sizes})
	con.hasExited = end.Exit != nil
	if con.hasExited || !end.Gone && ctx.Err() == nil {
		return end, err
	}
	if isOwner { // nobody is left to be told how that goes; the runner, once asked, ends it
		ctx, cancel := context.WithTimeout(context.Background(), endWithin/2)
		defer cancel()
		k.askToStop(ctx)
	}
	return end, command.Exit(command.ExitInterrupted)
}

func (k *call) printEnd(end control.Ending) error {
	r := result{Name: k.name(), State: "detached", Detail: fmt.Sprintf("it goes on: atm attach %s", k.name())}
	if end.Exit != nil {
		r.State, r.Detail = "ended", cmp.Or(end.Exit.Signal, fmt.Sprintf("exit %d", end.Exit.Code))
		if state, err := k.s.Team.State(k.name()); err == nil && state.Run != nil && state.Run.WasStopped {
			r.State, r.Detail = "stopped", ""
		}
	} else if !end.Detached {
		return command.Failed("the runner of %s ended the attachment: %s", k.name(), end.Reason).WithHint("atm attach %s", k.name())
	}
	return command.Print(k.c, r)
}

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
