package agent

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

var upCommand = &cli.Command{
	Name: "up", ArgsUsage: "[NAME…]", Usage: "start the team: every member that team.toml gives a command",
	UsageText: "atm up\natm up bob\natm up --foreground\natm init --toml    writes a team.toml to start from",
	Description: "Members that run stay as they are, and are waited for. Each is ready, or it is said why not;\n" +
		"a member that is named brings along those that it is started after. Interrupted, or killed:\n" +
		"again carries on. Exit 6: some are not ready.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "foreground", Usage: "stay until interrupted or until nobody runs any more, then stop them"},
	},
	Action: up,
}

// A startup are the members that one `atm up` is about.
type startup struct {
	c     *cli.Context
	s     *command.Scope
	plan  *config.Config
	names []wire.Name // with a command; those that others are started after come first
	order []wire.Name // the same, with those that others must start

	printing sync.Mutex
}

func up(c *cli.Context) error {
	u, err := openStartup(c)
	if err != nil {
		return err
	}
	if c.Bool("foreground") {
		return u.foreground()
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	if err = u.start(ctx); ctx.Err() != nil {
		command.Warn(c, "interrupted; the members that were started go on: atm up carries on, atm down stops them")
	}
	return err
}

// openStartup finds the members that are meant: the named ones with those that they
// are started after, or all. Every member of team.toml gets its mailbox, people too.
func openStartup(c *cli.Context) (*startup, error) {
	s, err := command.OpenTeam(c)
	if err != nil {
		return nil, err
	}
	plan, err := s.Team.Config()
	if err != nil {
		return nil, err
	}
	names, err := namesToStart(c, s, plan)
	if err != nil {
		return nil, err
	}
	u := &startup{c: c, s: s, plan: plan, order: plan.StartOrder(names)}
	u.names = slices.DeleteFunc(slices.Clone(u.order), func(n wire.Name) bool { return len(plan.Members[n].Command) == 0 })
	for _, n := range u.order {
		if err := s.MayAct("start", n); err != nil {
			return nil, err
		}
	}
	for n := range plan.Members {
		if s.Team.Box(n).Exists() || s.Team.WasRetired(n) {
			continue
		}
		if err := s.Team.Create(c.Context, n); err != nil && !errors.Is(err, mailbox.ErrExists) {
			return nil, err
		}
	}
	return u, nil
}

func namesToStart(c *cli.Context, s *command.Scope, plan *config.Config) (names []wire.Name, err error) {
	startable := plan.Startable()
	if len(startable) == 0 {
		return nil, command.Usage("team.toml gives nobody a command").
			WithHint("atm init --toml writes one to start from; atm run bob -- claude runs one agent without")
	}
	for _, word := range c.Args().Slice() {
		name := wire.Name(word)
		if _, isPlanned := plan.Members[name]; !isPlanned {
			if _, err := s.Member(word); err != nil {
				return nil, err
			}
		}
		if !slices.Contains(startable, name) {
			return nil, noCommand(s, name)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		names = startable
	}
	return names, nil
}

// start starts the members that do not run, waits until all are ready, and says of
// each what became of it.
func (u *startup) start(ctx context.Context) error {
	errs := u.plan.Start(ctx, u.order, func(ctx context.Context, n wire.Name) error {
		if !slices.Contains(u.names, n) {
			return nil // somebody else starts it
		}
		r, err := u.bring(ctx, n)
		if err == nil {
			u.print(r)
		}
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed []wire.Name
	for _, n := range u.names {
		if errs[n] != nil {
			failed = append(failed, n)
			u.printFailure(ctx, n, command.Explain(u.c, errs[n]))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	e := command.Failed("not ready: %s", command.Join(failed))
	if len(failed) < len(u.names) {
		e.Code, e.Exit = "partial", command.ExitPartial
	}
	return e.WithHint("atm up tries again")
}

// print prints a result. That nobody reads it stops nothing.
func (u *startup) print(r memberResult) {
	u.printing.Lock()
	defer u.printing.Unlock()
	command.Print(u.c, r)
}

// tries is how often a member is started or waited for that others start and stop
// meanwhile.
const tries = 5

// bring has a member run and be ready: started, or as it is.
func (u *startup) bring(ctx context.Context, n wire.Name) (r memberResult, err error) {
	for range tries {
		if r, err = u.bringOnce(ctx, n); err == nil {
			return r, nil
		}
		running, _ := u.s.Team.Running(n)
		refused, ok := errors.AsType[*command.Error](err)
		isTaken := ok && refused.Exit == command.ExitRefused && running // somebody else was quicker
		if !isTaken && !errors.Is(err, errGone) {
			return r, err
		}
	}
	return r, err
}

func (u *startup) bringOnce(ctx context.Context, n wire.Name) (r memberResult, err error) {
	running, err := u.s.Team.Running(n)
	if err != nil {
		return r, err
	}
	box, err := u.s.Team.Member(n)
	if err != nil {
		return r, err
	}
	if running {
		r, err = awaitReady(ctx, u.c, u.s, box, nil, readyWithin)
		if changed := u.s.Team.Changed(n, u.plan); err == nil && len(changed) > 0 {
			command.Warn(u.c, "%s: in team.toml its %s changed since it was started, which counts from the next start: atm down %s; atm up %s",
				n, strings.Join(changed, ", "), n, n)
		}
		if r.State == "ready" {
			r.State = "running"
		}
		return r, err
	}
	sp, err := newSpec(u.c, u.s, u.plan, box, nil)
	if err != nil {
		return r, err
	}
	p, err := startRunner(u.c, u.s, sp)
	if err != nil {
		return r, err
	}
	return awaitReady(ctx, u.c, u.s, box, p, readyWithin)
}

// printFailure prints why a member is not ready, and keeps that where `atm team` shows
// it.
func (u *startup) printFailure(ctx context.Context, n wire.Name, e *command.Error) {
	u.print(memberResult{Name: n, State: "failed", Detail: e.Message, Hint: e.Hint})
	running, err := u.s.Team.Running(n)
	if running || err != nil {
		return
	}
	event := wire.Event{Source: "cli", Kind: "state_change"}.With("new", "error").With("detail", e.Message)
	if err := u.s.Team.Box(n).Log().Append(ctx, event); err != nil {
		command.Warn(u.c, "%s: the reason could not be kept: %v", n, err)
	}
}

// foreground starts the team, waits until it is interrupted, nobody reads on or
// nobody runs any more, and stops it. A signal cuts none of that short.
func (u *startup) foreground() error {
	ctx, stop := signal.NotifyContext(u.c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	output.IgnoreSIGPIPE()
	err := u.start(ctx)
	for u.isAnyRunning() && !output.ReaderGone(os.Stdout) && sleep(ctx, time.Second) {
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // interrupted while they were started
	}
	d := &shutdown{c: u.c, s: u.s, names: u.names}
	return cmp.Or(err, d.stop(context.WithoutCancel(u.c.Context)))
}

// isAnyRunning: what cannot be told is no reason to end.
func (u *startup) isAnyRunning() bool {
	return slices.ContainsFunc(u.names, func(n wire.Name) bool {
		running, err := u.s.Team.Running(n)
		return running || err != nil
	})
}
