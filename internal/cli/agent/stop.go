package agent

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/wire"
)

var stopCommand = &cli.Command{
	Name: "stop", Aliases: []string{"terminate", "quit", "kill"}, ArgsUsage: "NAME", Usage: "end an agent, everything it started, and its runner",
	UsageText:   "atm stop bob",
	Description: "Asks, then TERM, then KILL. Its mail stays. An agent that does not run: exit 0.",
	Flags:       []cli.Flag{&cli.BoolFlag{Name: "force", Aliases: []string{"f", "9"}, Hidden: true}}, // that is what it comes to
	Action:      with(func(ctx context.Context, k *call) error { return k.print(k.stop(ctx)) }),
}

var interruptCommand = &cli.Command{
	Name: "interrupt", ArgsUsage: "NAME", Usage: "break off an agent's turn, as a person would with Escape",
	UsageText:   "atm interrupt bob",
	Description: "Presses the keys that this agent takes for it. Refused while it asks something, which the\nsame keys would answer: atm pending. An agent without a runner that tells of its turn on the\nolder ACP wire is asked there to cancel it: atm events NAME --follow --as-wire acp.",
	Action:      with(func(ctx context.Context, k *call) error { return k.printOutcome(k.s.Interrupt(ctx, k.name())) }),
}

var restartCommand = &cli.Command{
	Name: "restart", ArgsUsage: "NAME", Usage: "end an agent's program and start it again",
	UsageText:   "atm restart bob",
	Description: "The same command, runner and recording; attached terminals stay. What it had started is ended.",
	Action:      onRunner("restart", restart),
}

// stop ends the agent, all that it started and its runner, and comes back when the runner's lock is free. An agent that
// is about to start does not. A runner that does not answer is killed; what it leaves is then ended.
func (k *call) stop(ctx context.Context) (result, error) {
	r, isAsked := result{Name: k.name(), State: "not running"}, false
	if err := k.s.MayStop("stop", r.Name); err != nil {
		return r, err
	}
	k.s.Team.MarkStopped(r.Name) // a full disk is no reason not to stop
	for began := time.Now(); time.Since(began) < listenWithin; command.Sleep(ctx, probeEvery) {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if !isAsked {
			ended, err := k.askToStop(ctx)
			refusal, isRefused := errors.AsType[*control.Error](err)
			silent, isSilent := errors.AsType[*control.NotAnsweringError](err)
			switch { // after any other failure it is about to listen, or to end
			case err == nil:
				isAsked, r.State, r.Ended = true, "stopped", ended
			case isRefused && refusal.Code != "failed":
				return r, k.s.RunnerError(r.Name, err)
			case isSilent && silent.PID != 0:
				if p, err := os.FindProcess(silent.PID); err == nil {
					p.Kill()
				}
				command.Warn(k.c, "%s: its runner, process %d, did not answer and was killed", r.Name, silent.PID)
				r.State = "stopped"
			}
		}
		running, err := k.box.Store().Running(r.Name)
		if err != nil || !running && isAsked {
			return r, err
		}
		if !running {
			return k.endLeftovers(ctx, r)
		}
		r.State = "stopped"
	}
	return r, command.Failed("the runner of %s has not ended within %s", r.Name, listenWithin).WithHint("atm status %s", r.Name)
}

func (k *call) askToStop(ctx context.Context) (ended []string, err error) {
	client, err := k.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	o, err := client.Stop(ctx)
	return o.Ended, err
}

func (k *call) endLeftovers(ctx context.Context, r result) (result, error) {
	info, err := runinfo.Read(k.s.Team.Dir(), r.Name)
	if err != nil {
		return r, err
	}
	left, err := info.Leftovers()
	if err != nil {
		return r, err
	}
	m, err := k.s.Team.Summary(r.Name)
	if err != nil || len(left) == 0 && !m.RunnerGone { // whoever holds the lock counts as running
		return r, err
	}
	hold, err := k.box.Store().HoldRunner(ctx, r.Name) // so that it is not started meanwhile
	if err != nil {
		return r, err
	}
	defer hold.Release()
	r.Ended, err = info.EndLeftovers()
	if len(r.Ended) > 0 {
		r.State = "stopped"
	}
	if err != nil {
		return r, err
	}
	// Nobody has told of its end, which is wanted now.
	return r, k.box.Log().Append(ctx, wire.Event{Source: "cli", Kind: "exited"}.With("reason", "asked to"))
}

func restart(ctx context.Context, k *call, client *control.Client) error {
	before, err := client.Status(ctx)
	if err != nil {
		return err
	}
	o, err := client.Restart(ctx)
	r := resultOf(k.name(), o)
	for began := time.Now(); err == nil && r.PID == 0 && time.Since(began) < listenWithin; command.Sleep(ctx, lookEvery) {
		var now control.Status
		if now, err = client.Status(ctx); now.ChildPID != before.ChildPID {
			r.State, r.PID = "restarted", now.ChildPID
		}
	}
	return k.print(r, err)
}
