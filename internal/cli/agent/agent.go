// Package agent is the verbs around running agents: they start and stop them, show and type into their
// terminals, ask them, answer what they ask, and keep their events.
//
// An agent runs under a runner, a process of its own: the program atm-runner. Everything here
// reaches it through its control socket.
package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		runCommand, upCommand, downCommand,
		attachCommand, screenCommand, typeCommand, interruptCommand, stopCommand, restartCommand,
		askCommand, historyCommand, pendingCommand, approveCommand, rejectCommand,
		eventCommand, eventsCommand,
	}
}

// Times.
const (
	lookEvery    = 50 * time.Millisecond  // the runner is asked how its program stands
	probeEvery   = 10 * time.Millisecond  // or whether it is there
	readyWithin  = 30 * time.Second       // up waits so long for a prompt that the driver knows
	quietWithin  = 3 * time.Second        // and for any other; so does run --detach
	seenWithin   = 2 * time.Second        // by a runner, the dialog of which an event has told
	listenWithin = 15 * time.Second       // from a runner's lock to its socket: it first ends what the last one left
	endWithin    = 2 * time.Second        // for this process, after a signal in an attached terminal
	readingTime  = 700 * time.Millisecond // until the agent's screen covers the line that says how to leave
)

type call struct {
	c   *cli.Context
	s   *command.Scope
	box *mailbox.Box
}

func (k *call) name() wire.Name { return k.box.Agent() }

func open(c *cli.Context) (*call, error) {
	s, err := command.OpenTeam(c)
	if err != nil {
		return nil, err
	}
	box, err := s.Enter(c.Args().First())
	return &call{c, s, box}, err
}

func with(do func(context.Context, *call) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		k, err := open(c)
		if err != nil {
			return err
		}
		ctx, stop := command.Interruptible(c.Context)
		defer stop()
		return do(ctx, k)
	}
}

// onRunner is with for what the agent's runner does. verb stands in a refusal; "": anybody may.
func onRunner(verb string, do func(context.Context, *call, *control.Client) error) cli.ActionFunc {
	return with(func(ctx context.Context, k *call) error {
		if err := k.s.MayAct(verb, k.name()); verb != "" && err != nil {
			return err
		}
		return k.s.AskRunner(ctx, k.name(), func(client *control.Client) error { return do(ctx, k, client) })
	})
}

// dial connects to the agent's runner, if it listens; Scope.AskRunner also waits for one that is about to.
func (k *call) dial(ctx context.Context) (*control.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, command.AnswerWithin)
	defer cancel()
	return k.s.Team.Dial(ctx, k.name())
}

func (k *call) status(ctx context.Context) (status control.Status, err error) {
	client, err := k.dial(ctx)
	if err == nil {
		defer client.Close()
		status, err = client.Status(ctx)
	}
	return status, err
}

// A result is what became of an agent: every verb that starts, stops, types into or answers one prints it.
type result struct {
	Name   wire.Name `json:"name"`
	State  string    `json:"state"` // ready, running, started, failed, stopped, restarted, typed, …
	Detail string    `json:"detail,omitempty"`
	PID    int       `json:"pid,omitempty"`
	Ended  []string  `json:"ended,omitempty"` // processes that were ended with it
}

func resultOf(name wire.Name, o control.Outcome) result {
	return result{Name: name, State: o.Done, Detail: o.Detail, Ended: o.Ended}
}

func (k *call) print(r result, err error) error { return command.Done(k.c, err, r, r.String()) }

func (k *call) printOutcome(o control.Outcome, err error) error {
	return k.print(resultOf(k.name(), o), err)
}

func (r result) String() string {
	line := fmt.Sprintf("%s: %s", r.Name, letter.Escape(r.State))
	if r.Detail != "" {
		line += " (" + letter.Escape(r.Detail) + ")"
	}
	if r.PID > 0 {
		line += fmt.Sprintf(", process %d", r.PID)
	}
	if len(r.Ended) > 0 {
		line += "; ended with it: " + letter.Escape(strings.Join(r.Ended, ", "))
	}
	return line
}

// oneLine is a text from outside as at most n characters of one line.
func oneLine(text string, n int) string {
	return letter.Clip(letter.Escape(strings.Join(strings.Fields(text), " ")), n)
}
