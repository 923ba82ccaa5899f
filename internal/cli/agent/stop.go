package agent

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun"
)

var stopCommand = &cli.Command{
	Name: "stop", Aliases: []string{"terminate", "quit"}, ArgsUsage: "NAME", Usage: "end an agent, everything it started, and its runner",
	UsageText:   "atm stop bob\natm stop bob --grace 30s",
	Description: "Asks, then TERM, then KILL. Its mail stays. An agent that does not run: exit 0.",
	Flags: []cli.Flag{
		command.DurationFlag("grace", 0, "how long it may take to end by itself (`D`)"),
	},
	Action: stop,
}

var interruptCommand = &cli.Command{
	Name: "interrupt", ArgsUsage: "NAME", Usage: "break off an agent's turn, as a person would with Escape",
	UsageText:   "atm interrupt bob",
	Description: "Presses the keys that this agent takes for it. Refused while it asks something, which the\nsame keys would answer: atm pending.",
	Action: func(c *cli.Context) error {
		return perform(c, "interrupt", func(ctx context.Context, client *control.Client) (control.Outcome, error) {
			return client.Interrupt(ctx)
		})
	},
}

var restartCommand = &cli.Command{
	Name: "restart", ArgsUsage: "NAME", Usage: "end an agent's program and start it again",
	UsageText:   "atm restart bob",
	Description: "The same command, runner and recording; attached terminals stay. What it had started is ended.",
	Action:      restart,
}

// Times of stopping and restarting.
const (
	stopWithin    = 15 * time.Second // a runner may take so long from its lock to its socket
	releaseWithin = 5 * time.Second  // and from the end of its agent to its own
	restartWithin = 15 * time.Second
	probeEvery    = 10 * time.Millisecond
	defaultGrace  = 2 * time.Second // for what a killed runner has left
)

func stop(c *cli.Context) error {
	grace := command.Duration(c, "grace")
	if c.IsSet("grace") && grace < time.Millisecond {
		return command.Usage("--grace is at least a millisecond").WithHint("atm stop %s --grace 1s", c.Args().First())
	}
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	if err := s.MayStop("stop", box.Agent()); err != nil {
		return err
	}
	ctx, end := command.Interruptible(c.Context)
	defer end()
	o, err := stopAgent(ctx, c, s, box, grace)
	if err != nil {
		return runnerError(s, box, err)
	}
	return command.Print(c, outcome{Agent: string(box.Agent()), Outcome: o})
}

// stopAgent ends an agent, all that it started and its runner, and comes back when
// the runner's lock is free. One that is about to start does not.
func stopAgent(ctx context.Context, c *cli.Context, s *command.Scope, box *mailbox.Box, grace time.Duration) (control.Outcome, error) {
	if err := s.Team.MarkStopped(box.Agent()); err != nil { // a full disk is no reason not to stop
		command.Warn(c, "a start of %s that is under way is not told of the stop: %v", box.Agent(), err)
	}
	wasRunning := false
	for deadline := time.Now().Add(stopWithin); ; {
		o, err := askToStop(ctx, box, grace)
		if err == nil {
			return o, awaitRelease(ctx, c, box)
		}
		var said *control.Error
		if errors.As(err, &said) && said.Code != "failed" || !errors.Is(err, control.ErrGone) && !errors.Is(err, control.ErrNoRunner) && said == nil {
			return o, err
		}
		running, probe := box.Store().Running(box.Agent())
		if probe != nil {
			return o, probe
		}
		if !running && !wasRunning && errors.Is(err, control.ErrNoRunner) {
			return stopLeftovers(ctx, box, grace)
		}
		if !running {
			return control.Outcome{Done: "stopped"}, nil // it ended meanwhile
		}
		wasRunning = true // it is about to listen, or to end
		if time.Now().After(deadline) {
			return o, err
		}
		if !sleep(ctx, probeEvery) {
			return o, ctx.Err()
		}
	}
}

func askToStop(ctx context.Context, box *mailbox.Box, grace time.Duration) (control.Outcome, error) {
	client, err := dial(ctx, box)
	if err != nil {
		return control.Outcome{}, err
	}
	defer client.Close()
	return client.Stop(ctx, control.StopRequest{Grace: grace})
}

// awaitRelease waits until a runner has let go of its lock: the next command is to
// find the agent stopped.
func awaitRelease(ctx context.Context, c *cli.Context, box *mailbox.Box) error {
	for deadline := time.Now().Add(releaseWithin); time.Now().Before(deadline); {
		running, err := box.Store().Running(box.Agent())
		if err != nil || !running {
			return err
		}
		if !sleep(ctx, probeEvery) {
			return ctx.Err()
		}
	}
	command.Warn(c, "the runner of %s has not ended yet", box.Agent())
	return nil
}

// stopLeftovers ends what a runner that was killed has left running.
func stopLeftovers(ctx context.Context, box *mailbox.Box, grace time.Duration) (control.Outcome, error) {
	o := control.Outcome{Done: "not running"}
	hold, err := box.Store().HoldRunner(ctx, box.Agent()) // it is not to be started meanwhile
	if err != nil {
		return o, err
	}
	defer hold.Release()
	left, err := ptyrun.Leftovers(box)
	if err != nil {
		return o, err
	}
	if grace == 0 {
		grace = defaultGrace
	}
	for _, p := range left.Processes {
		o.Ended = append(o.Ended, p.String())
	}
	return o, left.End(grace)
}

// restart comes back when the new program runs.
func restart(c *cli.Context) error {
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	if err := s.MayAct("restart", box.Agent()); err != nil {
		return err
	}
	ctx, end := command.Interruptible(c.Context)
	defer end()
	client, err := connect(ctx, c, s, box)
	if err != nil {
		return err
	}
	defer client.Close()
	before, err := client.Status(ctx)
	if err != nil {
		return runnerError(s, box, err)
	}
	o, err := client.Restart(ctx)
	if err != nil {
		return runnerError(s, box, err)
	}
	shown := outcome{Agent: string(box.Agent()), Outcome: o}
	for deadline := time.Now().Add(restartWithin); o.Done == "restarting"; {
		now, err := client.Status(ctx)
		if err != nil {
			return runnerError(s, box, err)
		}
		if now.ChildPID != 0 && now.ChildPID != before.ChildPID {
			shown.Done, shown.PID = "restarted", now.ChildPID
			break
		}
		if time.Now().After(deadline) {
			return command.Failed("%s has not started again within %s", box.Agent(), restartWithin).WithHint("atm screen %s", box.Agent())
		}
		if !sleep(ctx, lookEvery) {
			return ctx.Err()
		}
	}
	return command.Print(c, shown)
}
