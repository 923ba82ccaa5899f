package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/policy"
)

var downCommand = &cli.Command{
	Name: "down", Category: "! kill-server shutdown stop-all halt kill-session", ArgsUsage: "[NAME…]", Usage: "stop the team and everything it started",
	UsageText: `atm down
atm down bob`,
	Description: "Their mail and their worktrees stay.",
	Action:      command.With(app.OpenTeam, down),
}

// down does not read team.toml, so that a mistake there keeps nothing from being stopped.
func down(c *cli.Context, s *app.Scope, p *command.Printer) error {
	var agents []*call
	for _, word := range c.Args().Slice() {
		its := *s
		box, err := its.EnterTeamOf(word)
		if err != nil {
			return err
		}
		agents = append(agents, &call{&its, p, box})
	}
	isNamed := len(agents) > 0
	if !isNamed {
		boxes, err := s.Team.Boxes()
		if err != nil {
			return err
		}
		for _, box := range boxes {
			if err := s.May(policy.Stop, box.Agent()); err != nil { // before this process ends with its own agent
				return err
			}
			agents = append(agents, &call{s, p, box})
		}
	}
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	results := &resultList{p: p, Members: []result{}}
	err := stopAll(ctx, results, agents, isNamed || p.IsJSON)
	if err == nil && !isNamed && !slices.ContainsFunc(results.Members, wasStopped) {
		p.Warn("no agent of team %s was running", s.Team.Name)
	}
	return results.end(err)
}

func wasStopped(r result) bool { return r.State != "not running" }

// stopAll stops agents side by side, and our own last, since this process ends with it. With printAll it also prints
// those that did not run.
func stopAll(ctx context.Context, results *resultList, agents []*call, printAll bool) error {
	errs := make([]error, len(agents))
	stop := func(i int) {
		r, err := result{}, agents[i].s.May(policy.Stop, agents[i].name())
		if err == nil {
			r, err = agents[i].stop(ctx, agents[i].s.Actor().Name)
		}
		if err != nil {
			errs[i] = fmt.Errorf("not stopped: %s: %w", agents[i].name(), err)
		} else if printAll || wasStopped(r) {
			results.add(result{Name: r.Name, State: r.State})
		}
	}
	var others sync.WaitGroup
	me := -1
	for i, k := range agents {
		if (k.s.Actor() == policy.Actor{Name: k.name(), IsAgent: true}) {
			me = i
		} else {
			others.Go(func() { stop(i) })
		}
	}
	others.Wait()
	if me >= 0 {
		stop(me)
	}
	err := errors.Join(errs...)
	if ctx.Err() != nil || err == nil {
		return ctx.Err()
	}
	e := results.p.Explain(err)
	if slices.ContainsFunc(results.Members, wasStopped) {
		e.Code, e.Exit = "partial", failure.ExitPartial
	}
	return e
}
