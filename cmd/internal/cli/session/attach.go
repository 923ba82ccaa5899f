package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/input"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var attachCommand = &cli.Command{
	Name: "attach", Category: "join", ArgsUsage: "ID", Usage: "join a session: see what its agent says, and type messages",
	UsageText: `atm session attach bob
atm session attach bob --read-only`,
	Description: `Starts with the end of the log. Each line you type is a message; Ctrl-D leaves, and the session
continues. Without a terminal it ends with stdin, unless --follow.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "read-only", Usage: "only look"},
		&cli.BoolFlag{Name: "follow", Usage: "without a terminal: stay until the session is over"},
	},
	Action: func(c *cli.Context) error {
		o, open := attachOptions{isReadOnly: c.Bool("read-only"), follows: c.Bool("follow")}, app.OpenToWrite
		if o.isReadOnly {
			open = app.OpenTeam
		}
		return withSession(open, func(_ *cli.Context, k *call) error {
			return k.s.Follow(func(ctx context.Context) error { return k.attach(ctx, o) })
		})(c)
	},
}

// attachOptions are the flags of session attach.
type attachOptions struct{ isReadOnly, follows bool }

func (k *call) say(ctx context.Context, in foreign.HumanInput) (input.SessionResult, error) {
	from := input.SessionInput{From: k.s.Me, Input: in, Origin: k.s.Origin()}
	return input.SendInput(ctx, k.s.Team, k.session.SessionID, from)
}

// lastShown is how many messages of the log are shown first.
const lastShown = 20

// A console shows an attached session and reads lines for it, on a terminal or on stdin and stdout.
type console struct {
	p        *command.Printer
	terminal *term.Terminal // nil without a terminal
	readLine func() (string, error)
	restore  func() // restores the terminal
}

func openConsole(p *command.Printer, isReadOnly bool) (*console, error) {
	if !output.IsTerminal(p.In) || !p.Repaints() {
		in := bufio.NewReader(p.In)
		if isReadOnly {
			in = bufio.NewReader(strings.NewReader(""))
		}
		readLine := func() (string, error) {
			line, size, err := wire.ReadLine(in, wire.MaxFile)
			if size > wire.MaxFile {
				p.Warn("a line of over %d MiB is not sent", wire.MaxFile>>20)
			}
			return string(line), err
		}
		return &console{p: p, readLine: readLine, restore: func() {}}, nil
	}
	leaveRaw, err := output.MakeRaw(p.In)
	if err != nil {
		return nil, err
	}
	terminal := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{p.In, p.Out}, "> ")
	return &console{p: p, terminal: terminal, readLine: terminal.ReadLine, restore: func() {
		io.WriteString(p.Out, "\r\x1b[K")
		leaveRaw()
	}}, nil
}

func (con *console) show(line fmt.Stringer) error {
	if con.terminal == nil {
		return con.p.Print(line)
	}
	if w, h, _ := output.Size(con.p.Out); w > 0 {
		con.terminal.SetSize(w, h)
	}
	_, err := fmt.Fprintln(con.terminal, letter.Wrap(line.String(), con.p.Width()))
	return err
}

func (con *console) note(format string, args ...any) {
	if con.terminal == nil {
		con.p.Warn(format, args...)
		return
	}
	text := failure.Say(format, args...).Map(con.p.Command).String()
	fmt.Fprintln(con.terminal, letter.Wrap(letter.Escape("-- "+text), con.p.Width()))
}

func (k *call) attach(ctx context.Context, o attachOptions) error {
	con, err := openConsole(k.p, o.isReadOnly)
	if err != nil {
		return err
	}
	defer con.restore()
	log := k.s.Team.Sessions().Log(k.session, 0)
	defer log.Close()
	isFirst, streamed := true, stream{isOff: con.p.IsJSON}
	con.note("session %s with %s, %s for %s; Ctrl-D leaves", short(k.session), k.session.AgentID, k.session.State, age(k.session))
	lines := make(chan string) // nil after the last line
	go con.readLines(lines)
	var state reducer.Word
	var looked time.Time
	for {
		if k.session, err = refresh(ctx, k.s, k.session.SessionID); err != nil {
			return err
		}
		entries, err := log.Next(ctx, k.session)
		if err != nil {
			return err
		}
		if isFirst {
			entries, isFirst = entries[max(0, len(entries)-lastShown):], false
		}
		for _, m := range append(entries, streamed.next(entries, log.SoFar())...) {
			if m.Content == "" {
				continue
			}
			if err := con.show(entry{m, k.session.AgentID}); err != nil {
				return err
			}
		}
		if lines == nil && (con.terminal != nil || !o.follows) {
			return nil
		}
		isOver := !k.session.State.Alive()
		if time.Since(looked) > time.Second {
			state, looked = k.noteBlocked(ctx, con, state), time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
			if isOver {
				return nil
			}
		case text, ok := <-lines:
			if !ok {
				lines = nil
			} else if isOver {
				return failure.Refused("session %s is %s: %q was not sent", short(k.session), k.session.State, letter.Clip(text, 40)).
					WithHint("`atm session new --agent %s`", k.session.AgentID)
			} else if err := k.sendLine(ctx, text, o.isReadOnly); err != nil { // only this line failed
				con.note("%v", err)
			}
		}
	}
}

// A stream is what was shown of a turn that goes on. A JSON document is a whole entry.
type stream struct {
	isOff bool
	shown string
}

// next returns what the agent has said since the last call, by whole words. Of the entries it takes out what was shown before
// they were whole.
func (st *stream) next(entries []sessions.Entry, said string) []sessions.Entry {
	if st.isOff {
		return nil
	}
	for i, m := range entries {
		if rest, isShown := strings.CutPrefix(m.Content, st.shown); m.Sender == sessions.SenderAgent && st.shown != "" && isShown {
			entries[i].Content, st.shown = strings.TrimSpace(rest), ""
		}
	}
	if !strings.HasPrefix(said, st.shown) { // another turn
		st.shown = ""
	}
	words := strings.TrimRightFunc(strings.TrimRightFunc(said[len(st.shown):], func(r rune) bool { return !unicode.IsSpace(r) }), unicode.IsSpace)
	if strings.TrimSpace(words) == "" {
		return nil
	}
	st.shown += words
	return []sessions.Entry{{Sender: sessions.SenderAgent, Content: strings.TrimSpace(words), Timestamp: time.Now()}}
}

// noteBlocked says that the agent waits for a person, once: its question is no entry of the log. It returns the agent's state.
func (k *call) noteBlocked(ctx context.Context, con *console, before reducer.Word) reducer.Word {
	m, err := presence.One(ctx, k.s.Team, wire.Name(k.session.AgentID))
	if err == nil && m.State == reducer.WordBlocked && m.State != before {
		con.note("%s: `atm pending` shows what it asks", app.InState(m))
	}
	return m.State
}

func (con *console) readLines(lines chan<- string) {
	defer close(lines)
	for {
		text, err := con.readLine()
		if text = strings.TrimRight(text, "\r\n"); text != "" {
			lines <- text
		}
		if err != nil {
			return
		}
	}
}

func (k *call) sendLine(ctx context.Context, text string, isReadOnly bool) error {
	if isReadOnly {
		return errors.New("read only: nothing is sent")
	}
	if err := app.CheckText(text); err != nil {
		return err
	}
	_, err := k.say(context.WithoutCancel(ctx), foreign.HumanInput{Kind: foreign.HumanMessage, Text: text})
	return err
}
