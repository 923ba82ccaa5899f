package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

var attachCommand = &cli.Command{
	Name: "attach", Aliases: []string{"join"}, ArgsUsage: "ID", Usage: "join it: what its agent says, and a line to type",
	UsageText: "atm session attach bob\natm session attach bob --read-only",
	Description: "Begins with the end of the log. A line is a message; Ctrl-D leaves, and the session goes\n" +
		"on. Without a terminal it ends with stdin, unless --follow.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "read-only", Usage: "look only"},
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "without a terminal: stay until the session is over"},
	},
	Action: attach,
}

const (
	lastShown   = 20 // messages of the log are shown first
	attachEvery = 250 * time.Millisecond
)

// attached is a session on this terminal, or in lines where there is none.
type attached struct {
	c        *cli.Context
	s        *command.Scope
	id       wire.UUID
	terminal *term.Terminal // nil: lines
	shown    uint64         // messages of the log
}

func attach(c *cli.Context) error {
	s, one, err := open(c, !c.Bool("read-only"))
	if err != nil {
		return err
	}
	a := &attached{c: c, s: s, id: one.SessionID}
	return s.Follow(func(ctx context.Context) error { return a.run(ctx, one) })
}

// run shows what is new and says what is typed, until one of them ends.
func (a *attached) run(ctx context.Context, one *sessions.Session) error {
	restore, err := a.openTerminal()
	if err != nil {
		return err
	}
	defer restore()
	_, all := one.Entries(0)
	a.shown = all - min(all, lastShown)
	a.note("session %s with %s, %s for %s; Ctrl-D leaves", short(one), one.AgentID, one.State, lived(one))
	lines := make(chan string)
	go a.read(lines)
	for ended := false; ; {
		over, err := a.update(ctx)
		if over || ended || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(attachEvery):
		case text, ok := <-lines:
			if ok {
				a.say(text)
				continue
			}
			lines = nil
			ended = a.terminal != nil || !a.c.Bool("follow")
		}
	}
}

// openTerminal takes hold of the terminal, if stdin and stdout are one.
func (a *attached) openTerminal() (restore func(), err error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !command.Terminal() || a.c.Bool("json") || os.Getenv("TERM") == "dumb" {
		return func() {}, nil
	}
	in := int(os.Stdin.Fd())
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, err
	}
	a.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{os.Stdin, os.Stdout}, "> ")
	return func() {
		os.Stdout.WriteString("\r\x1b[K")
		term.Restore(in, before)
	}, nil
}

// read reads lines until there are no more. It ends with the process.
func (a *attached) read(lines chan<- string) {
	defer close(lines)
	in := bufio.NewReader(os.Stdin)
	readLine := func() (string, error) { return in.ReadString('\n') }
	if a.terminal != nil {
		readLine = a.terminal.ReadLine
	} else if a.c.Bool("read-only") {
		return
	}
	for {
		text, err := readLine()
		if text = strings.TrimRight(text, "\r\n"); text != "" {
			lines <- text
		}
		if err != nil {
			return
		}
	}
}

// update shows what is new, and reports whether the session is over.
func (a *attached) update(ctx context.Context) (over bool, err error) {
	one, err := refresh(ctx, a.s, a.id)
	if err != nil {
		return false, explain(err)
	}
	entries, all := one.Entries(a.shown)
	for _, m := range entries {
		if err := a.print(entry{m, one.AgentID}); err != nil {
			return false, err
		}
	}
	a.shown = all
	return !one.State.Alive(), nil
}

// say sends a line that was typed. An error is shown, and the session goes on.
func (a *attached) say(text string) {
	err := command.CheckText(text)
	if a.c.Bool("read-only") {
		err = errors.New("read only: nothing is sent")
	}
	if err == nil {
		_, err = say(a.c, a.s, a.id, wire.HumanInput{Kind: "message", Text: text})
	}
	if err != nil {
		a.note("%v", err)
	}
}

// print shows a line above what is being typed.
func (a *attached) print(line fmt.Stringer) error {
	if a.terminal == nil {
		return command.Print(a.c, line)
	}
	if w, h, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
		a.terminal.SetSize(w, h)
	}
	_, err := fmt.Fprintln(a.terminal, line)
	return err
}

// note shows something that nobody in the session said.
func (a *attached) note(format string, args ...any) {
	if a.terminal == nil {
		command.Warn(a.c, format, args...)
		return
	}
	a.print(command.Text(letter.Escape("-- " + fmt.Sprintf(format, args...))))
}
