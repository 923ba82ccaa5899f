package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var attachCommand = &cli.Command{
	Name: "attach", Aliases: []string{"join"}, ArgsUsage: "ID", Usage: "join it: what its agent says, and a line to type",
	UsageText: "atm session attach bob\natm session attach bob --read-only",
	Description: "Begins with what was said since you were here last. A line is a message; /approve and\n" +
		"/reject answer what the agent asks; Ctrl-D leaves, and the session goes on. Without a\n" +
		"terminal it ends with stdin, unless --follow. What the agent mails to you is shown, and read.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "read-only", Usage: "look only"},
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "without a terminal: stay until the session is over"},
		command.DurationFlag("timeout", 0, "leave after `D`"),
	},
	Action: attach,
}

func attach(c *cli.Context) error {
	a := &attached{c: c, readOnly: c.Bool("read-only")}
	open := openToSpeak
	if a.readOnly {
		open = command.OpenTeam
	}
	var err error
	if a.s, err = open(c); err != nil {
		return err
	}
	if a.id, err = find(a.s, c.Args().First()); err != nil {
		return err
	}
	if plan, err := planOf(a.s); !a.readOnly && (err != nil || !plan.AllowHumanInput) {
		a.readOnly = true
		if err == nil {
			err = teams.ErrNoHumanInput
		}
		command.Warn(c, "%v; nothing is sent", err)
	}
	one, err := refresh(c.Context, a.s, a.id)
	if err != nil {
		return err
	}
	a.agent = a.s.Team.Box(wire.Name(one.AgentID)).Address()
	return a.s.Follow(func(ctx context.Context) error { return a.run(ctx, one) })
}

// lastShown is how much of the log is shown to somebody who has not been here.
const lastShown = 20

// attachEvery is how often the session is looked at.
const attachEvery = 250 * time.Millisecond

// attached is a session on this terminal, or in lines where there is none. A
// goroutine reads what is typed until the process ends.
type attached struct {
	c        *cli.Context
	s        *command.Scope
	id       wire.UUID
	agent    wire.Address
	readOnly bool

	terminal *term.Terminal // nil: lines
	shown    uint64         // messages of the log
}

// typed is a line that was typed, or the end of what is typed.
type typed struct {
	text string
	err  error
}

func (a *attached) run(ctx context.Context, one *sessions.Session) error {
	restore, err := a.openTerminal()
	if err != nil {
		return err
	}
	defer restore()
	a.begin(one)
	defer a.markSeen()
	if over, err := a.refresh(ctx); over || err != nil {
		return err
	}
	limited := ctx
	if d := command.Duration(a.c, "timeout"); d > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	lines := make(chan typed)
	go a.read(lines)
	for {
		ended := false
		select {
		case <-limited.Done():
			return ctx.Err()
		case <-time.After(attachEvery):
		case l := <-lines:
			if l.err == nil && a.handle(ctx, l.text) {
				return nil
			}
			if l.err != nil && a.terminal == nil && a.c.Bool("follow") {
				lines = nil
			} else {
				ended = l.err != nil
			}
		}
		if over, err := a.refresh(ctx); over || ended || err != nil {
			return err
		}
	}
}

// openTerminal takes hold of the terminal, if stdin and stdout are one.
func (a *attached) openTerminal() (restore func(), err error) {
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) || !command.Terminal() || a.c.Bool("json") || os.Getenv("TERM") == "dumb" {
		return func() {}, nil
	}
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, err
	}
	a.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{os.Stdin, os.Stdout}, "> ")
	a.terminal.SetBracketedPasteMode(true)
	return func() {
		a.terminal.SetBracketedPasteMode(false)
		os.Stdout.WriteString("\r\x1b[K")
		term.Restore(in, before)
	}, nil
}

// read reads lines until there are no more. Lines that are pasted are one message
// with the line behind them.
func (a *attached) read(lines chan<- typed) {
	if a.terminal == nil && a.readOnly {
		lines <- typed{err: io.EOF} // there is nothing to read
		return
	}
	in := bufio.NewReader(os.Stdin)
	pasted := ""
	for {
		var text string
		var err error
		if a.terminal == nil {
			text, err = in.ReadString('\n')
		} else {
			text, err = a.terminal.ReadLine()
		}
		if errors.Is(err, term.ErrPasteIndicator) {
			pasted += text + "\n"
			continue
		}
		text, pasted = strings.TrimRight(pasted+text, "\r\n"), ""
		if text != "" {
			lines <- typed{text: text}
		}
		if err != nil {
			lines <- typed{err: err}
			return
		}
	}
}

// begin says what session this is, and how much of its log is not shown.
func (a *attached) begin(one *sessions.Session) {
	_, all := one.Entries(0)
	from := all - min(all, lastShown)
	if a.s.Me != nil {
		if n, wasHere := one.Seen(string(a.s.Me.Agent())); wasHere {
			from = min(n, all)
		}
	}
	entries, _ := one.Entries(from)
	a.shown = all - uint64(len(entries))
	short := wire.ID(a.id).Short(6)
	line := fmt.Sprintf("session %s with %s, %s for %s", short, one.AgentID, one.State, lived(one))
	if a.shown > 0 {
		line += fmt.Sprintf("; %d before: atm session show %s", a.shown, short)
	}
	if a.terminal != nil {
		line += "; /approve and /reject answer, Ctrl-D leaves"
	}
	a.note("%s", line)
}

// markSeen notes how much of the log I have seen. After a kill the last of it is
// shown again.
func (a *attached) markSeen() {
	if a.s.Me == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := a.s.Team.Sessions().Change(ctx, a.id, func(one *sessions.Session) error {
		one.MarkSeen(string(a.s.Me.Agent()), a.shown)
		return nil
	})
	if err != nil {
		a.note("what you have seen could not be noted: %v", err)
	}
}

// refresh shows what is new, and reports whether the session is over.
func (a *attached) refresh(ctx context.Context) (over bool, err error) {
	if err := a.takeMail(ctx); err != nil {
		return false, err
	}
	one, err := refresh(ctx, a.s, a.id)
	if err != nil {
		return false, err
	}
	entries, all := one.Entries(a.shown)
	if lost := all - a.shown - uint64(len(entries)); all > a.shown && lost > 0 {
		a.note("%d messages are no longer in the log: atm events %s", lost, one.AgentID)
	}
	for i, m := range entries {
		if err := a.print(entry{m, one.AgentID}); err != nil {
			return false, err
		}
		a.shown = all - uint64(len(entries)-i-1)
	}
	a.shown = all
	return !one.State.Alive(), nil
}

// takeMail takes what the agent has mailed to me into the log, and marks it as read
// after that: killed in between, it is marked the next time and noted once.
func (a *attached) takeMail(ctx context.Context) error {
	if a.s.Me == nil || a.readOnly {
		return nil
	}
	isFromAgent := func(m *wire.Message) bool { return m.From == a.agent && m.Kind() == wire.TypeMessage }
	batch, err := a.s.Me.Peek(ctx, mailbox.ReadOptions{Match: isFromAgent})
	if err != nil || len(batch.Items) == 0 {
		return err
	}
	_, err = a.s.Team.Sessions().Change(ctx, a.id, func(one *sessions.Session) error {
		for _, it := range batch.Items {
			text := it.Body
			if it.RequiresAck {
				text += "\n(wants ack: atm ack " + it.ID.Short(6) + ")"
			}
			one.AddMessageOnce(sessions.SenderAgent, text, it.SentAt)
		}
		return nil
	})
	if err != nil {
		return err
	}
	options := mailbox.ReadOptions{IDs: command.IDs(batch.Items)}
	_, err = a.s.Me.Read(ctx, options, func(b mailbox.Batch) (int, error) { return len(b.Items), nil })
	return err
}

// handle does what a typed line says, and reports whether that is to leave. What
// goes wrong is said, and the session goes on.
func (a *attached) handle(ctx context.Context, text string) (leave bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if a.terminal == nil || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") {
		a.say(ctx, strings.TrimPrefix(text, "/"))
		return false
	}
	switch word {
	case "/quit", "/exit":
		return true
	case "/approve", "/reject":
		a.answer(ctx, word[1:], strings.TrimSpace(rest))
	default:
		a.note("no %s: there are /approve, /reject and /quit; /%s says it to the agent", word, text)
	}
	return false
}

func (a *attached) say(ctx context.Context, text string) {
	if a.readOnly {
		a.note("read only: nothing is sent")
		return
	}
	err := command.CheckText(text)
	if err == nil {
		var out teams.SessionResult
		out, err = a.s.Team.Say(ctx, a.id, input(a.s, wire.HumanInput{Kind: "message", Text: text}))
		if err == nil && out.Unlogged != nil {
			a.note("sent; the log could not be written: %v", out.Unlogged)
		}
	}
	if err != nil {
		a.note("%v", explain(err))
	}
}

// answer runs atm approve or atm reject: for the draft or question whose id the
// words begin with, else for what this agent asks.
func (a *attached) answer(ctx context.Context, verb, words string) {
	if a.readOnly {
		a.note("read only: nothing is answered")
		return
	}
	self, err := os.Executable()
	if err != nil {
		a.note("%v", err)
		return
	}
	what := string(a.agent.Agent)
	if first, rest, _ := strings.Cut(words, " "); isFragment(first) {
		what, words = first, strings.TrimSpace(rest)
	}
	args := []string{verb, what, "--root", a.s.Root.Path, "--team", string(a.s.Team.Name), "--as", string(a.s.Me.Agent())}
	if words != "" && verb == "reject" {
		args = append(args, "--reason="+words)
	} else if words != "" {
		args = append(args, "--", words)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0] = os.Args[0]
	out, _ := cmd.CombinedOutput() // it says what is wrong
	for line := range strings.Lines(string(out)) {
		a.note("%s", strings.TrimPrefix(strings.TrimRight(line, "\n"), "atm: "))
	}
}

func isFragment(word string) bool {
	_, err := wire.ParseFragment(word)
	return err == nil
}

// print shows something that was said, above what is being typed.
func (a *attached) print(e entry) error {
	if a.terminal == nil {
		return command.Print(a.c, e)
	}
	return a.write(e.String())
}

// note says something that nobody in the session said.
func (a *attached) note(format string, args ...any) {
	if a.terminal == nil {
		command.Warn(a.c, format, args...)
		return
	}
	a.write(letter.Escape("-- " + fmt.Sprintf(format, args...)))
}

func (a *attached) write(text string) error {
	if w, h, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
		a.terminal.SetSize(w, h)
	}
	_, err := a.terminal.Write([]byte(text + "\n"))
	return err
}
