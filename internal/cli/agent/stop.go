package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

var stopCommand = &cli.Command{
	Name: "stop", Aliases: []string{"terminate", "quit"}, ArgsUsage: "NAME", Usage: "end an agent, everything it started, and its runner",
	UsageText:   "atm stop bob",
	Description: "Asks, then TERM, then KILL. Its mail stays. An agent that does not run: exit 0.",
	Action: func(c *cli.Context) error {
		return withAgent(c, func(ctx context.Context, s *command.Scope, box *mailbox.Box) (fmt.Stringer, error) {
			return stopAgent(ctx, c, s, box)
		})
	},
}

var interruptCommand = &cli.Command{
	Name: "interrupt", ArgsUsage: "NAME", Usage: "break off an agent's turn, as a person would with Escape",
	UsageText:   "atm interrupt bob",
	Description: "Presses the keys that this agent takes for it. Refused while it asks something, which the\nsame keys would answer: atm pending.",
	Action: func(c *cli.Context) error {
		return perform(c, "interrupt", func(ctx context.Context, client *control.Client, name wire.Name) (fmt.Stringer, error) {
			o, err := client.Interrupt(ctx)
			return resultOf(name, o), err
		})
	},
}

var restartCommand = &cli.Command{
	Name: "restart", ArgsUsage: "NAME", Usage: "end an agent's program and start it again",
	UsageText:   "atm restart bob",
	Description: "The same command, runner and recording; attached terminals stay. What it had started is ended.",
	Action:      func(c *cli.Context) error { return perform(c, "restart", restart) },
}

// Times of stopping and restarting.
const (
	stopWithin    = 15 * time.Second // a runner may take so long from its lock to its socket
	restartWithin = 15 * time.Second
	probeEvery    = 10 * time.Millisecond
)

// stopAgent ends an agent, all that it started and its runner, and comes back when
// the runner's lock is free. An agent that is about to start does not. A runner that
// does not answer is killed; what it leaves is then ended.
func stopAgent(ctx context.Context, c *cli.Context, s *command.Scope, box *mailbox.Box) (memberResult, error) {
	name := box.Agent()
	r := memberResult{Name: name, State: "not running"}
	if err := s.MayStop("stop", name); err != nil {
		return r, err
	}
	s.Team.MarkStopped(name) // a full disk is no reason not to stop
	isAsked := false
	for began := time.Now(); time.Since(began) < stopWithin && ctx.Err() == nil; sleep(ctx, probeEvery) {
		if !isAsked {
			o, err := askToStop(ctx, box)
			if isAsked = err == nil; isAsked {
				r = resultOf(name, o)
			}
			if said, ok := errors.AsType[*control.Error](err); ok && said.Code != "failed" {
				return r, runnerError(s, box, err)
			}
			if silent, ok := errors.AsType[*control.NotAnsweringError](err); ok && silent.PID > 0 {
				if p, err := os.FindProcess(silent.PID); err == nil {
					p.Kill()
				}
				command.Warn(c, "%s: its runner, process %d, did not answer and was killed", name, silent.PID)
			}
		}
		running, err := box.Store().Running(name)
		if err != nil || !running && isAsked {
			return r, err
		}
		if !running {
			hold, err := box.Store().HoldRunner(ctx, name) // it is not to be started meanwhile
			if err != nil {
				return r, err
			}
			defer hold.Release()
			if r.Ended, err = endLeftovers(box); len(r.Ended) > 0 {
				r.State = "stopped"
			}
			return r, err
		}
		if !isAsked {
			r.State = "stopped" // it is about to listen, or to end
		}
	}
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	return r, command.Failed("the runner of %s has not ended within %s", name, stopWithin).WithHint("atm status %s", name)
}

func askToStop(ctx context.Context, box *mailbox.Box) (control.Outcome, error) {
	client, err := dial(ctx, box)
	if err != nil {
		return control.Outcome{}, err
	}
	defer client.Close()
	return client.Stop(ctx, control.StopRequest{})
}

// restart comes back when the new program runs.
func restart(ctx context.Context, client *control.Client, name wire.Name) (fmt.Stringer, error) {
	before, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	o, err := client.Restart(ctx)
	r := resultOf(name, o)
	for began := time.Now(); err == nil && r.State == "restarting" && time.Since(began) < restartWithin; sleep(ctx, lookEvery) {
		var now control.Status
		if now, err = client.Status(ctx); now.ChildPID != 0 && now.ChildPID != before.ChildPID {
			r.State, r.PID = "restarted", now.ChildPID
		}
	}
	return r, err
}
