// Package agent holds the verbs that start and stop agents, show and type into their terminals, ask them, answer their
// questions, and keep their events.
//
// An agent runs under a runner, a process of the program atm-runner. The verbs reach it through its control socket. Each is
// in a file of its name, reject in approve.go.
package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Commands returns the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		runCommand, upCommand, downCommand,
		attachCommand, screenCommand, typeCommand, interruptCommand, stopCommand, restartCommand,
		askCommand, historyCommand, pendingCommand, approveCommand, rejectCommand, claimCommand,
		eventCommand, eventsCommand,
	}
}

const (
	pollEvery    = 50 * time.Millisecond  // between two looks at a runner
	promptWithin = 30 * time.Second       // up and run --detach wait so long for a prompt that the driver knows
	quietWithin  = 3 * time.Second        // and so long for any other
	seenWithin   = 2 * time.Second        // for a runner to see the dialog that an event reports
	listenWithin = 15 * time.Second       // from a runner's lock to its socket: it first ends leftover processes
	listenOurs   = time.Minute            // the same of a runner that this process has started, and that lives
	stopWithin   = 20 * time.Second       // for a runner to stop its agent: it gives up after 13 seconds itself
	endWithin    = 2 * time.Second        // for this process to end after a signal in an attached terminal
	readingTime  = 700 * time.Millisecond // to read how to detach, before the agent's screen covers that line
	dialogHolds  = 6                      // so many looks in a row must see a dialog before it counts, if it is in the log
	unloggedFor  = 100                    // and so many if it is not
)

// A call is one verb called with one agent.
type call struct {
	s   *app.Scope
	p   *command.Printer
	box *maildir.Box
}

func (k *call) name() wire.Name { return k.box.Agent() }

func openAgent(c *cli.Context) (*call, error) {
	p := command.PrinterOf(c)
	s, err := app.OpenTeam(p.Given)
	if err != nil {
		return nil, err
	}
	box, err := s.EnterTeamOf(c.Args().First())
	return &call{s, p, box}, err
}

// withAgent is the action of a verb for one agent: do takes its options from the command line.
func withAgent(do func(context.Context, *cli.Context, *call) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		k, err := openAgent(c)
		if err != nil {
			return err
		}
		ctx, stop := app.Interruptible(c.Context)
		defer stop()
		return do(ctx, c, k)
	}
}

// onRunner is withAgent for requests to the agent's runner. Unless the act is "", the caller needs the right to it.
func onRunner(act policy.Act, do func(context.Context, *cli.Context, *call, *control.Client) error) cli.ActionFunc {
	return withAgent(func(ctx context.Context, c *cli.Context, k *call) error {
		if act != "" {
			if err := k.s.MayAct(act, k.name()); err != nil {
				return err
			}
		}
		return k.s.AskRunner(ctx, k.name(), func(client *control.Client) error { return do(ctx, c, k, client) })
	})
}

// A result says what happened to an agent: each verb that starts, stops, types into or answers one prints it.
type result struct {
	Name    wire.Name `json:"name"`
	State   string    `json:"state"` // ready, running, started, failed, stopped, restarted, typed, …
	Detail  string    `json:"detail,omitempty"`
	Resumed string    `json:"resumed,omitempty"` // the conversation that its program continues
	PID     int       `json:"pid,omitempty"`
	Ended   []string  `json:"ended,omitempty"` // processes that were ended with the agent
}

func resultOf(name wire.Name, o control.Outcome) result {
	return result{Name: name, State: o.Done, Detail: o.Detail, Ended: o.Ended}
}

// tellResumed adds which conversation the agent continues, or why none.
func (r *result) tellResumed(s control.Status) {
	switch {
	case s.Resumed != "":
		r.Resumed = s.Resumed
	case s.NotResumed != "":
		r.Detail = app.JoinFilled("; ", r.Detail, "a new conversation: "+s.NotResumed)
	}
}

func (k *call) print(r result, err error) error {
	return k.p.Confirming().PrintUnlessError(err, r, r.String())
}

func (r result) String() string {
	line := fmt.Sprintf("%s: %s", r.Name, letter.Escape(r.State))
	if r.Detail == string(reducer.ToolRunning) {
		line += " while running a tool"
	} else if r.Detail != "" {
		line += " (" + letter.Escape(r.Detail) + ")"
	}
	if r.Resumed != "" {
		line += ", resumed " + letter.Escape(r.Resumed)
	}
	if r.PID > 0 {
		line += fmt.Sprintf(", process %d", r.PID)
	}
	if len(r.Ended) > 0 {
		line += "; ended with it: " + letter.Escape(strings.Join(r.Ended, ", "))
	}
	return line
}
