package session

import (
	"bufio"
	"cmp"
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
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var messageCommand = &cli.Command{
	Name: "message", Aliases: []string{"msg", "send", "say"}, ArgsUsage: "ID [TEXT…]", Usage: "say something to its agent",
	UsageText: "atm session message bob \"Focus on auth\"",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "message", Aliases: []string{"m", "body", "text"}, Usage: "`TEXT` as a flag"},
	},
	Action: with(message),
}

var attachCommand = &cli.Command{
	Name: "attach", Aliases: []string{"join"}, ArgsUsage: "ID", Usage: "join it: what its agent says, and a line to type",
	UsageText: "atm session attach bob\natm session attach bob --read-only",
	Description: "Begins with the end of the log. A line is a message; Ctrl-D leaves, and the session goes\n" +
		"on. Without a terminal it ends with stdin, unless --follow.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "read-only", Usage: "look only"},
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "without a terminal: stay until the session is over"},
	},
	Action: with(attach),
}

func message(k *call) error {
	words := k.c.Args().Tail()
	if k.c.IsSet("message") && len(words) > 0 {
		return command.Usage("the text is given twice: as a flag and as %q", words[0]).WithHint("leave one out")
	} else if k.c.IsSet("message") {
		words = []string{k.c.String("message")}
	}
	text, err := command.StdinText(k.c, words)
	if err != nil {
		return err
	}
	out, err := k.say(wire.HumanInput{Kind: "message", Text: text})
	if err != nil {
		return err
	}
	outlook := "the session is paused: it waits for atm session resume " + short(k.one)
	if k.one.State != wire.SessionPaused {
		m, _ := k.s.Team.Summary(k.agent())
		outlook = m.Forecast(time.Now(), false)
	}
	r := resultOf(k.one, fmt.Sprintf("sent %s to %s (%s)", out.Message.ID.Short(6), k.one.AgentID, outlook))
	r.ID = out.Message.ID
	return command.Print(k.c, r)
}

func abort(k *call) error {
	out, err := k.say(wire.HumanInput{Kind: "abort"})
	if err != nil {
		return err
	}
	r := resultOf(cmp.Or(out.Session, k.one), "aborted; its agent is gone")
	if out.Message != nil {
		r.ID, r.text = out.Message.ID, fmt.Sprintf("aborted; sent %s to %s", out.Message.ID.Short(6), k.one.AgentID)
	}
	return command.Print(k.c, r)
}

// say says something in the session as me.
func (k *call) say(in wire.HumanInput) (teams.SessionResult, error) {
	from := teams.SessionInput{From: k.s.Me, Input: in, Origin: k.s.Origin(), Person: command.Person()}
	out, err := k.s.Team.Say(k.c.Context, k.one.SessionID, from)
	if err == nil && out.Unlogged != nil {
		command.Warn(k.c, "sent; the session's log could not be written: %v", out.Unlogged)
	}
	return out, err
}

const (
	lastShown   = 20 // messages of the log are shown first
	attachEvery = 250 * time.Millisecond
)

// attached is a session on this terminal, or in lines where there is none.
type attached struct {
	*call
	terminal *term.Terminal // nil: lines
	shown    uint64         // messages of the log
}

func attach(k *call) error { return k.s.Follow((&attached{call: k}).run) }

// run shows what is new and says what is typed, until one of them ends.
func (a *attached) run(ctx context.Context) error {
	in := int(os.Stdin.Fd())
	if term.IsTerminal(in) && command.Terminal() && !a.c.Bool("json") && os.Getenv("TERM") != "dumb" {
		before, err := term.MakeRaw(in)
		if err != nil {
			return err
		}
		defer func() {
			os.Stdout.WriteString("\r\x1b[K")
			term.Restore(in, before)
		}()
		a.terminal = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{os.Stdin, os.Stdout}, "> ")
	}
	_, all := a.one.Entries(0)
	a.shown = all - min(all, lastShown)
	a.note("session %s with %s, %s for %s; Ctrl-D leaves", short(a.one), a.one.AgentID, a.one.State, lived(a.one))
	lines := make(chan string) // nil: there are no more
	go a.read(lines)
	isToStay := a.terminal == nil && a.c.Bool("follow")
	for {
		over, err := a.update(ctx)
		if over || err != nil || lines == nil && !isToStay {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(attachEvery):
		case text, ok := <-lines:
			if ok {
				a.send(text)
			} else {
				lines = nil
			}
		}
	}
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
	one, err := refresh(ctx, a.s, a.one.SessionID)
	if err != nil {
		return false, err
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

// send sends a line that was typed. An error is shown, and the session goes on.
func (a *attached) send(text string) {
	err := command.CheckText(text)
	if a.c.Bool("read-only") {
		err = errors.New("read only: nothing is sent")
	}
	if err == nil {
		_, err = a.say(wire.HumanInput{Kind: "message", Text: text})
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
	} else {
		a.print(command.Text(letter.Escape("-- " + fmt.Sprintf(format, args...))))
	}
}
