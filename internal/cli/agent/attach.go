package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
)

var attachCommand = &cli.Command{
	Name: "attach", Aliases: []string{"join"}, ArgsUsage: "NAME", Usage: "join an agent's terminal; " + control.DetachKey + " leaves it",
	UsageText: "atm attach bob\natm attach bob --read-only",
	Description: "Several terminals may; both can type, and the agent's is as large as the one resized last.\n" +
		"While a line that you began is not sent, no mail is typed in.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "read-only", Usage: "look only; into a pipe: the agent's bytes as they come"},
	},
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
	client, err := connect(c.Context, s, box)
	if err != nil {
		return err
	}
	a := &attachment{c: c, scope: s, box: box, readOnly: readOnly}
	if onTerminal {
		end, err := a.follow(client)
		if err != nil {
			return err
		}
		return a.printEnd(end)
	}
	defer client.Close()
	return s.Follow(func(ctx context.Context) error {
		_, err := client.Attach(ctx, control.AttachRequest{Cols: 120, Rows: 30, ReadOnly: true}, control.Terminal{Out: os.Stdout})
		if err != nil {
			return runnerError(s, box, err)
		}
		return ctx.Err()
	})
}

// An attachment is an agent's terminal shown on this one.
type attachment struct {
	c        *cli.Context
	scope    *command.Scope
	box      *mailbox.Box
	readOnly bool
	isOwner  bool // this process started the agent: what ends it ends the agent
}

// readingTime is how long the line that says how to leave stays before the agent's
// screen covers it.
const readingTime = 700 * time.Millisecond

// follow shows the agent's terminal on this one until it is left or ends, and
// closes the client. Closing this terminal detaches or, for the owner, ends the
// agent.
func (a *attachment) follow(client *control.Client) (end control.Ending, err error) {
	defer client.Close()
	if a.readOnly {
		command.Warn(a.c, "looking at %s; %s leaves", a.box.Agent(), control.DetachKey)
	} else {
		command.Warn(a.c, "attached to %s; %s leaves it running", a.box.Agent(), control.DetachKey)
	}
	con, err := openConsole(a.c.Context, os.Stdin, os.Stdout)
	if err != nil {
		return end, err
	}
	defer con.close()
	sleep(con.ctx, readingTime)
	size := con.size()
	end, err = client.Attach(con.ctx, control.AttachRequest{Cols: size.Cols, Rows: size.Rows, ReadOnly: a.readOnly},
		control.Terminal{In: con.typed, Out: con, Sizes: con.sizes})
	con.hasExited = end.Exit != nil
	if con.hasExited {
		return end, nil
	}
	if end.Gone || con.ctx.Err() != nil { // the terminal was closed, or a signal came
		if a.isOwner {
			// Nobody is left to be told how that went; the runner, once asked, ends it.
			ctx, cancel := context.WithTimeout(context.Background(), endWithin/2)
			defer cancel()
			askToStop(ctx, a.box)
		}
		return end, command.Exit(command.ExitInterrupted)
	}
	if err != nil {
		return end, runnerError(a.scope, a.box, err)
	}
	return end, nil
}

func (a *attachment) printEnd(end control.Ending) error {
	name := a.box.Agent()
	if end.Exit == nil && !end.Detached {
		return command.Failed("the runner of %s ended the attachment: %s", name, end.Reason).WithHint("atm attach %s", name)
	}
	r := memberResult{Name: name, State: "detached", Detail: fmt.Sprintf("it goes on: atm attach %s", name)}
	if end.Exit != nil {
		r.State, r.Detail = "ended", cmp.Or(end.Exit.Signal, fmt.Sprintf("exit %d", end.Exit.Code))
	}
	return command.Print(a.c, r)
}
