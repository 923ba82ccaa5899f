package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
)

var interruptVerb = &cmdline.Verb{
	Name: "interrupt", Args: "NAME", Summary: "break off an agent's turn, as a person would with Escape",
	Examples: []string{"atm interrupt bob"},
	Notes: []string{
		"Presses the keys that this agent takes for it; refused while it asks a question, which",
		"the same keys would answer: atm pending.",
	},
	MinArgs: 1, MaxArgs: 1,
	Run: long(func(ctx context.Context, e *env) error {
		return e.askRunner(ctx, "interrupt", func(c *control.Client) (control.Outcome, error) { return c.Interrupt(ctx) })
	}),
}
