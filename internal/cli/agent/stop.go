package agent

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
)

var stopCommand = &cli.Command{
	Name: "stop", Aliases: []string{"terminate", "quit"}, ArgsUsage: "NAME", Usage: "end an agent, everything it started, and its runner",
	UsageText:   "atm stop bob",
	Description: "Asks, then TERM, then KILL. Its mail stays. An agent that does not run: exit 0.",
	Action: func(c *cli.Context) error {
		s, box, err := openAgent(c)
		if err != nil {
			return err
		}
		ctx, end := command.Interruptible(c.Context)
		defer end()
		r, err := stopAgent(ctx, c, s, box)
		if err != nil {
			return err
		}
		return command.Print(c, r)
	},
}

var interruptCommand = &cli.Command{
	Name: "interrupt", ArgsUsage: "NAME", Usage: "break off an agent's turn, as a person would with Escape",
	UsageText:   "atm interrupt bob",
	Description: "Presses the keys that this agent takes for it. Refused while it asks something, which the\nsame keys would answer: atm pending.",
	Action: func(c *cli.Context) error {
		return perform(c, "interrupt", func(ctx context.Context, client *control.Client) (memberResult, error) {
			o, err := client.Interrupt(ctx)
			return resultOf("", o), err
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
	if err := s.Team.MarkStopped(name); err != nil { // a full disk is no reason not to stop
		command.Warn(c, "a start of %s that is under way is not told of the stop: %v", name, err)
	}
	isAsked := false
	for deadline := time.Now().Add(stopWithin); ; {
		if !isAsked {
			o, err := askToStop(ctx, box)
			if isAsked = err == nil; isAsked {
				r = resultOf(name, o)
			}
			if said, ok := errors.AsType[*control.Error](err); ok && said.Code != "failed" {
				return r, runnerError(s, box, err)
			}
			if silent, ok := errors.AsType[*control.NotAnsweringError](err); ok && silent.PID > 0 {
				if err := kill(silent.PID); err != nil {
					return r, err
				}
				command.Warn(c, "%s: its runner, process %d, did not answer and was killed", name, silent.PID)
			}
		}
		running, err := box.Store().Running(name)
		if err != nil {
			return r, err
		}
		if !running && isAsked {
			return r, nil
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
		if time.Now().After(deadline) {
			return r, command.Failed("the runner of %s has not ended within %s", name, stopWithin).WithHint("atm status %s", name)
		}
		if !sleep(ctx, probeEvery) {
			return r, ctx.Err()
		}
	}
}

func askToStop(ctx context.Context, box *mailbox.Box) (control.Outcome, error) {
	client, err := dial(ctx, box)
	if err != nil {
		return control.Outcome{}, err
	}
	defer client.Close()
	return client.Stop(ctx, control.StopRequest{})
}

func kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

// restart comes back when the new program runs.
func restart(ctx context.Context, client *control.Client) (memberResult, error) {
	before, err := client.Status(ctx)
	if err != nil {
		return memberResult{}, err
	}
	o, err := client.Restart(ctx)
	r := resultOf("", o)
	for deadline := time.Now().Add(restartWithin); err == nil && r.State == "restarting"; sleep(ctx, lookEvery) {
		var now control.Status
		if now, err = client.Status(ctx); err == nil && now.ChildPID != 0 && now.ChildPID != before.ChildPID {
			r.State, r.PID = "restarted", now.ChildPID
		} else if time.Now().After(deadline) {
			return r, command.Failed("its program has not started again within %s", restartWithin)
		}
	}
	return r, err
}
