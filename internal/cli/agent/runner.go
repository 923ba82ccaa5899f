package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// runnerCommand is the runner as a process of its own: run and up start it.
var runnerCommand = &cli.Command{
	Name: "runner", ArgsUsage: "NAME [CMD…]", Hidden: true, Usage: "the process behind `atm run --detach`",
	UsageText: "atm run bob --detach -- claude",
	Flags:     append(specFlags(), &cli.StringFlag{Name: "last-stop", Usage: "refuse if `IT` is no longer the agent's last stop"}),
	Action: func(c *cli.Context) error {
		s, sp, err := openSpec(c)
		if err != nil {
			return err
		}
		if c.IsSet("last-stop") {
			sp.lastStop = c.String("last-stop")
		}
		exit, err := runHere(c, s, sp, true)
		if err != nil {
			return err
		}
		return command.PrintJSON(ending{Exit: &exit})
	},
}

// runHere is the runner: it returns when the agent's program has ended for good,
// and with it all that it started. A signal ends it, which may take some seconds
// and is never cut short.
func runHere(c *cli.Context, s *command.Scope, sp *spec, detached bool) (exit ptyrun.Exit, err error) {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	output.IgnoreSIGPIPE()
	name := sp.box.Agent()
	hold, err := sp.box.Store().HoldRunner(ctx, name)
	if err != nil {
		return exit, err
	}
	// Released before anybody hears of the end, who may start it anew at once.
	release := sync.OnceValue(hold.Release)
	defer release()
	// Whoever stops the agent notes that first and then looks for this lock, so that
	// one of the two sees the other.
	if last, err := s.Team.LastStop(name); err != nil || last != sp.lastStop {
		return exit, stoppedMeanwhile(name, err)
	}
	log := os.Stderr
	if detached {
		if log, err = openLog(sp.box); err != nil {
			return exit, err
		}
		defer log.Close()
	}
	if err := endLeftovers(c, sp); err != nil {
		return exit, err
	}
	if err := s.Team.SavePolicy(name, sp.policy); err != nil {
		return exit, err
	}
	o := sp.options
	state, err := s.Team.State(name)
	if err != nil {
		return exit, err
	}
	o.State, o.Held = *state, hold.StillHeld
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	notifyPeople(s, sp.box, &o)
	exit, err = ptyrun.Run(ctx, o)
	release()
	return exit, err
}

// notifyPeople has the runner tell whoever answers of what its agent asks, and send
// the reminders that are due.
func notifyPeople(s *command.Scope, box *mailbox.Box, o *ptyrun.Options) {
	origin := &wire.Origin{Via: "runner", Run: o.Run, UID: s.Origin().UID}
	o.Told = func(ctx context.Context, q ptyrun.Question) error {
		d := q.Dialog
		return s.Team.NotifyRequest(ctx, box, teams.DialogRequest{
			ID: q.ID, Kind: d.Kind, Prompt: d.Prompt, Tool: d.Tool, Input: d.Input, Options: q.Options(),
		}, origin)
	}
	o.Answered = func(ctx context.Context, id wire.ID) error { return s.Team.WithdrawRequest(ctx, box, id) }
	o.Overdue = func(ctx context.Context, idle bool) error { return s.Team.Remind(ctx, box, idle, origin) }
}

func stoppedMeanwhile(name wire.Name, err error) error {
	if err != nil {
		return err
	}
	return command.Refused("%s was stopped meanwhile", name).WithHint("atm up %s", name)
}

// openLog begins the file for what a runner says, once it has its lock: the log of
// one that runs is nobody else's. No link is followed. A crash is written there,
// too.
func openLog(box *mailbox.Box) (*os.File, error) {
	dir, run := box.Store().Dir(), string(box.Agent())+"/run"
	if err := dir.Mkdir(run); err != nil {
		return nil, err
	}
	log, err := dir.OpenFile(run+"/run.log", os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := log.Truncate(0); err != nil {
		log.Close()
		return nil, err
	}
	return log, debug.SetCrashOutput(log, debug.CrashOptions{})
}

// endLeftovers names what a runner that was killed has left running, and ends it
// unless it is to go on.
func endLeftovers(c *cli.Context, sp *spec) error {
	left, err := ptyrun.Leftovers(sp.box)
	if err != nil || len(left.Processes) == 0 {
		return err
	}
	var named []string
	for _, p := range left.Processes {
		named = append(named, p.String())
	}
	names := strings.Join(named, ", ")
	done := "ended"
	if sp.keepLeft {
		sp.options.Kept, done = left.Runs, "left running"
	} else if err := left.End(defaultGrace); err != nil {
		return fmt.Errorf("end what the last runner of %s left (%s): %w", sp.box.Agent(), names, err)
	}
	command.Warn(c, "%s: what its last runner left was %s: %s", sp.box.Agent(), done, names)
	return nil
}
