package main

import (
	"context"

	"github.com/agentteammail/atm/internal/agentconfig"
	"github.com/agentteammail/atm/internal/cmdline"
)

var uninstallVerb = &cmdline.Verb{
	Name: "uninstall", Args: "TOOL", Summary: "take out of a coding agent's configuration what install put there",
	Examples: []string{"atm uninstall claude", "atm uninstall codex --local"},
	Notes: []string{
		"The files get back what was in them. What you changed since is kept, and",
		"only what is atm's taken out.",
	},
	Flags:   []cmdline.Flag{localFlag, {Name: "dry-run", Usage: "print what would change, and write nothing"}},
	MaxArgs: 1,
	Run: run(func(ctx context.Context, e *env) error {
		return e.configure((*agentconfig.Installer).Uninstall, "nothing of atm is there")
	}),
}
