// Package agent is the verbs around running agents: they start and stop them,
// show and type into their terminals, ask them, answer what they ask, and keep
// their events.
//
// An agent runs under a runner (package ptyrun), which is this program under the
// hidden verb runner, in a session of its own. Everything here reaches it through
// its control socket. A started agent is ready when its runner's status
// says so. A runner that ends says on its stdout how.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
		runCommand, runnerCommand, upCommand, downCommand,
		attachCommand, screenCommand, typeCommand, interruptCommand, stopCommand, restartCommand,
		askCommand, historyCommand, pendingCommand, approveCommand, rejectCommand,
		eventCommand, eventsCommand,
	}
}

// openAgent opens the team, and the mailbox of the agent that the first argument
// names, or mine. The scope's team is that agent's from then on.
func openAgent(c *cli.Context) (*command.Scope, *mailbox.Box, error) {
	if !c.Args().Present() {
		s, err := command.OpenMe(c)
		if err != nil {
			return s, nil, err
		}
		return s, s.Me, nil
	}
	s, err := command.OpenTeam(c)
	if err != nil {
		return s, nil, err
	}
	box, err := s.Member(c.Args().First())
	if err != nil {
		return s, nil, err
	}
	s.Team, err = s.Root.Team(box.Address().Team)
	return s, box, err
}

// A memberResult is what became of a member: every verb that starts, stops, types
// into or answers an agent prints it.
type memberResult struct {
	Name   wire.Name `json:"name"`
	State  string    `json:"state"` // ready, running, started, failed, stopped, restarted, typed, …
	Detail string    `json:"detail,omitempty"`
	Hint   string    `json:"hint,omitempty"` // of one that failed
	PID    int       `json:"pid,omitempty"`
	Ended  []string  `json:"ended,omitempty"` // processes that were ended with it
}

// resultOf is the result for what a runner did.
func resultOf(name wire.Name, o control.Outcome) memberResult {
	return memberResult{Name: name, State: o.Done, Detail: o.Detail, Ended: o.Ended}
}

func (r memberResult) String() string {
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
	if r.Hint != "" {
		line += "\n  " + letter.Escape(r.Hint)
	}
	return line
}

// sleep waits, and reports whether that was not cut short.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// answerWithin is how long a runner may take to say who it is. It does so at once
// unless it is stopped or stuck; a machine under load must not look like that.
const answerWithin = 3 * time.Second

func dial(ctx context.Context, box *mailbox.Box) (*control.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return control.Dial(ctx, filepath.Join(box.Path(), "run"))
}

// statusOf is what an agent's runner says about itself.
func statusOf(ctx context.Context, box *mailbox.Box) (control.Status, error) {
	client, err := dial(ctx, box)
	if err != nil {
		return control.Status{}, err
	}
	defer client.Close()
	return client.Status(ctx)
}

// withAgent opens the first argument's agent, has something done with it, and prints
// what came of that.
func withAgent(c *cli.Context, do func(context.Context, *command.Scope, *mailbox.Box) (fmt.Stringer, error)) error {
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	result, err := do(ctx, s, box)
	if err != nil {
		return err
	}
	return command.Print(c, result)
}

// perform has the runner of the first argument's agent do something, and prints what
// came of it. verb stands in a refusal; "" is for what anybody may do.
func perform(c *cli.Context, verb string, do func(context.Context, *control.Client, wire.Name) (fmt.Stringer, error)) error {
	return withAgent(c, func(ctx context.Context, s *command.Scope, box *mailbox.Box) (fmt.Stringer, error) {
		if verb != "" {
			if err := s.MayAct(verb, box.Agent()); err != nil {
				return nil, err
			}
		}
		client, err := dial(ctx, box)
		if err != nil {
			return nil, runnerError(s, box, err)
		}
		defer client.Close()
		result, err := do(ctx, client, box.Agent())
		if err != nil {
			return nil, runnerError(s, box, err)
		}
		return result, nil
	})
}

// runnerError gives an error of a runner its exit code and its hint.
func runnerError(s *command.Scope, box *mailbox.Box, err error) error {
	name := box.Agent()
	if said, ok := errors.AsType[*control.Error](err); ok {
		e := command.Failed("%s: %s", name, letter.Escape(said.Message)) // an option's words are the screen's
		e.Code = said.Code
		e.Exit = max(command.ExitFailed, map[string]int{"usage": command.ExitUsage, "refused": command.ExitRefused}[said.Code])
		return e.WithHint("%s", cmp.Or(said.Hint, "atm screen "+string(name)))
	}
	if silent, ok := errors.AsType[*control.NotAnsweringError](err); ok && silent.PID > 0 {
		return command.Failed("the runner of %s, process %d, does not answer", name, silent.PID).
			WithHint("kill -CONT %d, if it was stopped; atm stop %s ends it", silent.PID, name)
	}
	if errors.Is(err, control.ErrNoRunner) {
		return command.Failed("%s does not run", name).WithHint("%s", s.Team.RunAgain(name))
	}
	return err
}
