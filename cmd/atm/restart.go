package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
)

var restartVerb = &cmdline.Verb{
	Name: "restart", Args: "NAME", Summary: "end an agent's program and start it again",
	Examples: []string{"atm restart bob"},
	Notes:    []string{"The same command, runner and recording; attached terminals stay. What it had started is ended."},
	MinArgs:  1, MaxArgs: 1,
	Run: long(func(ctx context.Context, e *env) error {
		return e.askRunner(ctx, "restart", func(c *control.Client) (control.Outcome, error) { return c.Restart(ctx) })
	}),
}
