package agent

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/wire"
)

var stopCommand = &cli.Command{
	Name: "stop", Category: "! kill end quit terminate", ArgsUsage: "NAME", Usage: "stop an agent, everything it started, and its runner",
	UsageText:   "atm stop bob",
	Description: "Asks it to quit, then sends TERM, then KILL. Its mail stays. Exit 0 if it does not run.",
	Action:      withAgent(func(ctx context.Context, _ *cli.Context, k *call) error { return k.stopOne(ctx) }),
}

func (k *call) stopOne(ctx context.Context) error {
	if err := k.s.May(policy.Stop, k.name()); err != nil {
		return err
	}
	return k.print(k.stop(ctx, k.s.Actor().Name))
}

// stop ends the agent, everything that it started and its runner, even one that is still starting, and returns when the
// runner's lock is free. A runner that does not answer is killed, and its leftover processes are ended. It is told who
// stops it ("": somebody at a terminal), who must be allowed to.
func (k *call) stop(ctx context.Context, by wire.Name) (result, error) {
	r, isAsked := result{Name: k.name(), State: "not running"}, false
	k.s.Team.MarkStopped(r.Name) // stop goes on when the disk is full
	for began := time.Now(); time.Since(began) < listenWithin; app.Sleep(ctx, pollEvery) {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if !isAsked {
			ended, err := k.askToStop(ctx, by, time.Since(began) > listenWithin/2)
			refusal, isRefused := errors.AsType[*control.Error](err)
			silent, isSilent := errors.AsType[*control.NotAnsweringError](err)
			switch { // after any other error the runner is starting or ending
			case err == nil:
				isAsked, r.State, r.Ended = true, "stopped", ended
			case isRefused && refusal.Code != "failed":
				return r, k.s.RunnerError(r.Name, err)
			case isSilent && silent.PID != 0:
				if p, err := os.FindProcess(silent.PID); err == nil {
					p.Kill()
				}
				began = time.Now() // the answer may have taken all the time
				k.p.Warn("%s: its runner, process %d, did not answer and was killed", r.Name, silent.PID)
				r.State = "stopped"
			}
		}
		running, err := k.s.Team.Running(r.Name)
		if err != nil || !running && isAsked {
			return r, err
		}
		if !running {
			for _, p := range programs.Of(k.s.Team, r.Name) {
				k.p.Warn("%s goes on: atm did not start it; end it in its own terminal", p)
			}
			return k.endLeftovers(ctx, r)
		}
		r.State = "stopped"
	}
	return r, failure.Failed("the runner of %s has not ended within %s", r.Name, listenWithin).WithHint("`atm status %s`", r.Name)
}

// askToStop asks the runner, and waits until it has stopped. One without a socket is starting or ending, unless it
// isLate: then it is not answering.
func (k *call) askToStop(ctx context.Context, by wire.Name, isLate bool) (ended []string, err error) {
	dial := k.s.Team.Dial
	if isLate {
		dial = k.s.Team.DialRunner
	}
	limited, cancel := context.WithTimeout(ctx, app.AnswerWithin)
	defer cancel()
	client, err := dial(limited, k.name())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	client.By = string(by)
	limited, cancel = context.WithTimeout(ctx, stopWithin)
	defer cancel()
	o, err := client.Stop(limited)
	return o.Ended, err
}

// endLeftovers ends the processes that a killed runner has left.
func (k *call) endLeftovers(ctx context.Context, r result) (result, error) {
	info, infoErr := runinfo.Read(k.s.Team.Dir(), r.Name)
	left, leftErr := process.Leftovers(info.Run)
	m, err := presence.One(ctx, k.s.Team, r.Name) // before HoldRunner, which makes it look running
	if err = cmp.Or(infoErr, leftErr, err); err != nil || len(left) == 0 && !m.RunnerGone {
		return r, err
	}
	hold, err := claim.HoldRunner(ctx, k.s.Team.Store, r.Name) // so that nobody starts it in the meantime
	if err != nil {
		return r, err
	}
	defer hold.Release()
	ended, err := process.EndLeftovers(info.Run)
	if r.Ended = process.Names(ended); len(ended) > 0 {
		r.State = "stopped"
	}
	if err != nil {
		return r, err
	}
	// No event has reported its end, which somebody asked for. Whoever holds the lock speaks as its runner.
	return r, k.box.Log().Append(ctx, wire.Event{Source: wire.SourcePTY, Kind: wire.Exited}.With("reason", "asked to"))
}
