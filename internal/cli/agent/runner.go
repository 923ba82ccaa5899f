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
	"time"

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
		return command.PrintJSON(runnerReport{Exit: &exit})
	},
}

// A runnerReport is what a runner prints when it ends.
type runnerReport struct {
	Exit  *ptyrun.Exit `json:"exit,omitempty"`
	Error *struct {
		Code, Message, Hint string
	} `json:"error,omitempty"`
}

// runHere is the runner: it returns when the agent's program has ended for good,
// and with it all that it started. A signal ends it, which may take some seconds
// and is never cut short.
func runHere(c *cli.Context, s *command.Scope, sp *spec, isDetached bool) (exit ptyrun.Exit, err error) {
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
	last, err := s.Team.LastStop(name)
	if err != nil {
		return exit, err
	}
	if last != sp.lastStop {
		return exit, command.Refused("%s was stopped meanwhile", name).WithHint("atm up %s", name)
	}
	log := os.Stderr
	if isDetached {
		if log, err = openLog(sp.box); err != nil {
			return exit, err
		}
		defer log.Close()
	}
	left, err := endLeftovers(sp.box)
	if err != nil {
		return exit, fmt.Errorf("end what the last runner of %s left: %w", name, err)
	}
	if len(left) > 0 {
		command.Warn(c, "%s: what its last runner left was ended: %s", name, strings.Join(left, ", "))
	}
	if err := s.Team.SavePolicy(name, sp.policy); err != nil {
		return exit, err
	}
	if err := s.Team.SaveStart(name, sp.member); err != nil {
		return exit, err
	}
	state, err := s.Team.State(name)
	if err != nil {
		return exit, err
	}
	o := sp.options
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

// openLog begins the file for what a runner says, once it has its lock: the log of
// one that runs is nobody else's. No link is followed. A crash is written there, too.
func openLog(box *mailbox.Box) (*os.File, error) {
	log, err := box.Store().Dir().OpenFile(string(box.Agent())+"/run/run.log", os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	return log, debug.SetCrashOutput(log, debug.CrashOptions{})
}

// leftoversGrace is how long what a killed runner has left may take to end by itself.
const leftoversGrace = 2 * time.Second

// endLeftovers ends what a runner that was killed has left running, and names it.
// The caller holds the runner's lock.
func endLeftovers(box *mailbox.Box) (processes []string, err error) {
	left, err := ptyrun.Leftovers(box)
	if err != nil || len(left.Processes) == 0 {
		return nil, err
	}
	for _, p := range left.Processes {
		processes = append(processes, p.String())
	}
	return processes, left.End(leftoversGrace)
}
