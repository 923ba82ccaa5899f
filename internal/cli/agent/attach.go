package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
)

var attachCommand = &cli.Command{
	Name: "attach", ArgsUsage: "NAME", Usage: "join an agent's terminal; " + control.DetachKey + " leaves it",
	UsageText: "atm attach bob\natm attach bob --read-only",
	Description: "Several terminals may; both can type, and the agent's is as large as the one resized last.\n" +
		"While a line that you began is not sent, no mail is typed in.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "read-only", Usage: "look only; into a pipe: the agent's bytes as they come"},
	},
	Action: attach,
}

func attach(c *cli.Context) error {
	readOnly := c.Bool("read-only")
	onTerminal := term.IsTerminal(int(os.Stdin.Fd())) && command.Terminal()
	if !onTerminal && !(readOnly && !command.Terminal()) {
		return command.Usage("attach needs a terminal").WithHint("atm screen %s", c.Args().First())
	}
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	if who, isAgent := s.Actor(); isAgent && who == box.Agent() {
		return command.Refused("this is the terminal of %s already: it would show itself for ever", who).WithHint("atm screen %s", who)
	}
	if !readOnly {
		if err := s.MayAct("type into", box.Agent()); err != nil {
			return err
		}
	}
	client, err := connect(c.Context, c, s, box)
	if err != nil {
		return err
	}
	a := &attachment{c: c, scope: s, box: box, readOnly: readOnly}
	if !onTerminal {
		return a.copyOutput(client)
	}
	end, err := a.follow(client)
	if err != nil {
		return err
	}
	return a.sayEnding(end)
}

// An attachment is an agent's terminal shown on this one.
type attachment struct {
	c        *cli.Context
	scope    *command.Scope
	box      *mailbox.Box
	readOnly bool
	owner    bool // this process started the agent: what ends it ends the agent
}

var (
	errHungUp    = errors.New("the terminal was closed")
	errAskedToGo = errors.New("asked to end")
)

// readingTime is how long the line that says how to leave stays before the agent's
// screen covers it.
const readingTime = 700 * time.Millisecond

// follow shows the agent's terminal on this one until it is left or ends, and
// closes the client. Closing this terminal detaches or, for the owner, ends the
// agent.
func (a *attachment) follow(client *control.Client) (control.Ending, error) {
	defer client.Close()
	con, err := openConsole(a.c.Context, os.Stdin, os.Stdout)
	if err != nil {
		return control.Ending{}, err
	}
	defer con.close()
	if a.readOnly {
		command.Warn(a.c, "looking at %s; %s leaves", a.box.Agent(), control.DetachKey)
	} else {
		command.Warn(a.c, "attached to %s; %s leaves it running", a.box.Agent(), control.DetachKey)
	}
	if !a.c.Bool("quiet") {
		sleep(con.ctx, readingTime)
	}
	if err := con.enter(); err != nil {
		return control.Ending{}, err
	}
	size := con.size()
	end, err := client.Attach(con.ctx, control.AttachRequest{Cols: size.Cols, Rows: size.Rows, ReadOnly: a.readOnly},
		control.Terminal{In: con.typed, Out: con, Sizes: con.sizes})
	con.leave(end.Exit != nil)
	why := context.Cause(con.ctx)
	if end.Exit != nil {
		return end, nil
	}
	if end.Gone || errors.Is(why, errHungUp) || errors.Is(why, errAskedToGo) {
		if a.owner {
			a.stop()
		}
		return end, command.Exit(command.ExitInterrupted)
	}
	if err != nil {
		return end, runnerError(a.scope, a.box, err)
	}
	return end, nil
}

// copyOutput writes the agent's output into a pipe or a file, as it comes.
func (a *attachment) copyOutput(client *control.Client) error {
	defer client.Close()
	return a.scope.Follow(func(ctx context.Context) error {
		_, err := client.Attach(ctx, control.AttachRequest{Cols: 120, Rows: 30, ReadOnly: true}, control.Terminal{Out: os.Stdout})
		if err != nil {
			return runnerError(a.scope, a.box, err)
		}
		return ctx.Err()
	})
}

// stop ends an agent whose terminal has gone. Nobody is left to be told how that
// went; the runner, once asked, ends it in any case.
func (a *attachment) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin/2)
	defer cancel()
	askToStop(ctx, a.box, 0)
}

// endWithin is how long this process may take to end by itself after a signal.
const endWithin = 2 * time.Second

// attachEnd is what is printed when an attachment has ended.
type attachEnd struct {
	Agent    string        `json:"agent"`
	Detached bool          `json:"detached"`
	Exit     *control.Exit `json:"exit,omitempty"`
}

func (e attachEnd) String() string {
	if e.Exit == nil {
		return fmt.Sprintf("detached; %s goes on: atm attach %s", e.Agent, e.Agent)
	}
	if e.Exit.Signal != "" {
		return fmt.Sprintf("%s ended: %s", e.Agent, letter.Escape(e.Exit.Signal))
	}
	return fmt.Sprintf("%s ended: exit %d", e.Agent, e.Exit.Code)
}

func (a *attachment) sayEnding(end control.Ending) error {
	name := a.box.Agent()
	if end.Exit == nil && !end.Detached {
		return command.Failed("the runner of %s ended the attachment: %s", name, end.Reason).WithHint("atm attach %s", name)
	}
	return command.Print(a.c, attachEnd{Agent: string(name), Detached: end.Exit == nil, Exit: end.Exit})
}

// Leaving a terminal: what a program may have switched on is switched off, and the
// title put back that saveTitle has kept.
const (
	saveTitle  = "\x1b[22;2t"
	resetModes = "\x1b[0m\x1b[?25h\x1b7\x1b[r\x1b8\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l" +
		"\x1b[?2004l\x1b[?1l\x1b>\x1b[?7h\x1b[<1u\x1b[>4m\x1b[23;2t"
	leaveAlternate = "\x1b[?1049l"
	enterAlternate = "\x1b[?1049h"
	toBottom       = "\x1b[999;1H\r\n"
)

// An alternateScreen knows whether a program shows the alternate screen, by what
// it writes.
type alternateScreen struct {
	isOn bool
	tail []byte // the end of what was written: a sequence may come in two pieces
}

func (s *alternateScreen) Write(p []byte) (int, error) {
	text := append(s.tail, p...)
	on, off := bytes.LastIndex(text, []byte(enterAlternate)), bytes.LastIndex(text, []byte(leaveAlternate))
	if on != off { // one of them is there
		s.isOn = on > off
	}
	s.tail = bytes.Clone(text[max(0, len(text)-len(enterAlternate)+1):])
	return len(p), nil
}
