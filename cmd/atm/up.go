package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

var upVerb = &cmdline.Verb{
	Name: "up", Args: "[NAME…]", Summary: "start the team: every member that team.toml gives a command",
	Examples: []string{"atm up", "atm up bob", "atm up --foreground", "atm init --toml    writes a team.toml to start from"},
	Notes: []string{
		"Those that run stay as they are, and are waited for. Each is ready, or it is said why",
		"not; who is named brings along whom they come after. Interrupted, or killed: again",
		"carries on. Exit 6: some are not ready.",
	},
	Flags: []cmdline.Flag{
		{Name: "foreground", Usage: "stay and show the team; start again whose runner was killed; ^C is down"},
	},
	MaxArgs: -1,
	Guesses: []string{"start-all", "compose"},
	Run:     run(up),
}

func up(ctx context.Context, e *env) error {
	if e.Bool("foreground") {
		return e.foreground(ctx)
	}
	return e.interruptible(ctx, func(ctx context.Context) error {
		c, err := e.crew()
		if err != nil {
			return err
		}
		err = c.start(ctx)
		if ctx.Err() != nil && len(c.names) > 0 {
			e.Warn("interrupted; who was started goes on: atm up carries on, atm down stops them")
		}
		return err
	})
}

// crew are the members that one call is about, and how they are started.
type crew struct {
	*env
	plan    *config.Config
	names   []wire.Name          // whom the others wait for first
	tickets map[wire.Name]string // the last stop of each, when this began
	say     *telling
}

// crew is who is meant: the named ones with those they come after, or all.
func (e *env) crew() (*crew, error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	if !e.root.Accepted {
		return nil, cmdline.Refused("nothing is started from %s: nobody here made or accepted it", e.root.Path).WithHint("if it is yours: atm init")
	}
	plan, err := e.team.Config()
	if err != nil {
		return nil, err
	}
	for _, s := range e.Args {
		if n, err := wire.ParseName(s); err == nil {
			if err := e.misspelt(n, plan); err != nil {
				return nil, err
			}
		}
	}
	names := plan.Startable()
	if len(names) == 0 {
		return nil, cmdline.Usage("team.toml gives nobody a command").WithHint("atm init --toml writes one to start from; atm run bob -- claude runs one agent without")
	}
	if len(e.Args) > 0 {
		if names, err = namesOf(e.Args); err != nil {
			return nil, err
		}
		for _, n := range names {
			if !slices.Contains(plan.Startable(), n) {
				return nil, cmdline.Usage("team.toml gives %s no command", n).WithHint("%s", e.team.RunAgain(n)).WithCandidates(strs(plan.Startable())...)
			}
		}
	}
	c := &crew{env: e, plan: plan, names: plan.StartOrder(names), tickets: map[wire.Name]string{}, say: &telling{env: e}}
	for _, n := range c.names {
		if len(plan.Members[n].Command) == 0 {
			continue
		}
		if err := e.enlist(n); err != nil {
			return nil, err
		}
		if c.tickets[n], err = e.team.LastStop(n); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// enlist makes the mailbox of somebody whom team.toml names and who has none.
func (e *env) enlist(n wire.Name) error {
	err := e.team.Box(n).Present()
	if !errors.Is(err, mailbox.ErrNoAgent) || e.team.WasRetired(n) {
		return nil // `atm run` says what there is to say
	}
	_, err = addAll(context.Background(), e.team, []wire.Name{n})
	return err
}

// start starts who does not run, waits until all are ready, and says of each
// what became of it.
func (c *crew) start(ctx context.Context) error {
	done := c.say.waitFor(c.names)
	errs := c.plan.Start(ctx, c.names, func(ctx context.Context, n wire.Name) error {
		defer c.say.through(n)
		if len(c.plan.Members[n].Command) == 0 {
			return nil // somebody else starts it
		}
		t, err := c.bring(ctx, n)
		if err != nil {
			return err
		}
		_ = c.say.turnout(t) // unsaid, at the end: it runs all the same
		return nil
	})
	done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return cmp.Or(c.sayFailed(errs), c.say.unsaid)
}

// tries is how often a member is started or waited for that others start and
// stop meanwhile.
const tries = 5

// bring has a member run and be ready: started, or as it is.
func (c *crew) bring(ctx context.Context, n wire.Name) (turnout, error) {
	for try := 1; ; try++ {
		if err := c.awaitOrphan(ctx, n); err != nil {
			return turnout{}, err
		}
		running, err := c.team.Running(n)
		if err != nil {
			return turnout{}, err
		}
		var t turnout
		if running {
			t, err = c.awaitReady(ctx, n)
			t.Changed = c.team.Changed(n, c.plan)
		} else {
			t, err = c.startMember(ctx, n)
		}
		var beaten *selfError
		switch {
		case try == tries:
		case errors.Is(err, errGoneMeanwhile):
			continue
		case errors.As(err, &beaten) && beaten.Code == "refused":
			// Somebody else may have been quicker: then theirs is waited for.
			if running, e := c.team.Running(n); e == nil && running {
				continue
			}
		}
		return t, err
	}
}

// startMember runs `atm run NAME --detach`, in its worktree where it has one.
func (c *crew) startMember(ctx context.Context, n wire.Name) (turnout, error) {
	t := turnout{Name: n}
	if m := c.plan.Members[n]; m.Worktree {
		w, err := c.team.Worktree(ctx, os.Environ(), n, m.Cwd)
		if err != nil {
			return t, err
		}
		t.Worktree, t.Done = w.Top, w.Done
	}
	err := c.self(ctx, &t, []string{startTicket + "=" + c.tickets[n]}, "run", string(n), "--detach")
	return t, err
}
