package agent

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/maildir/drop"
)

var historyCommand = &cli.Command{
	Name: "history", Aliases: []string{"turns"}, ArgsUsage: "NAME", Usage: "show an agent's turns: when, how long, prompt, response, status",
	UsageText: `atm history bob    its mail: atm ls bob --all
atm history bob --limit 1 --json`,
	Description: "Shows only what events report; --json has whole prompts and responses.",
	Flags:       []cli.Flag{cmdline.CountFlag("limit", 10, "the newest `N` (default 10); 0: all", "all", "n")},
	Action: withAgent(func(ctx context.Context, c *cli.Context, k *call) error {
		drop.Ingest(ctx, k.box) // dropped files may be events
		turns, err := k.s.Team.Turns(k.name(), c.Int("limit"))
		return k.p.PrintUnlessError(err, map[string]any{"agent": k.name(), "turns": turns}, command.Turns(k.name(), turns))
	}),
}
