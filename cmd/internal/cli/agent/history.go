package agent

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir/drop"
)

var historyCommand = &cli.Command{
	Name: "history", Category: "turns transcript", ArgsUsage: "NAME [RANGE]", Usage: "show an agent's turns: when, how long, prompt, response, status",
	UsageText: `atm history bob    its mail: atm ls bob --all
atm history bob 3-7 --full    the third newest to the seventh newest
atm history bob --limit 1 --json`,
	Description: "Shows only what events report; --full and --json have whole prompts and responses.",
	Flags: []cli.Flag{
		cmdline.CountFlag("limit", 10, "the newest `N` (default 10); 0: all", "all", "n"),
		&cli.BoolFlag{Name: "full", Usage: "no cap"},
	},
	Action: withAgent(func(ctx context.Context, c *cli.Context, k *call) error {
		drop.Ingest(ctx, k.box, drop.Patience) // dropped files may be events
		first, limit, err := turnRange(c)
		if err != nil {
			return err
		}
		turns, err := k.s.Team.Turns(k.name(), limit)
		turns = turns[:max(len(turns)-first+1, 0)]
		result := map[string]any{"agent": k.name(), "turns": turns}
		shown := command.TurnsShown{Last: first, IsNumbered: c.NArg() > 1 || c.Bool("full"), IsFull: c.Bool("full"), Command: k.p.Command}
		if c.NArg() > 1 {
			result["first"] = first
		}
		if len(turns) == 0 && first > 1 {
			return k.p.PrintUnlessError(err, result, fmt.Sprintf("no turn %s of %s is known", c.Args().Get(1), k.name()))
		}
		return k.p.PrintUnlessError(err, result, command.Turns(k.name(), turns, shown))
	}),
}

// turnRange is which turns to show: from the first newest to the limit newest (0: all), by RANGE or --limit.
func turnRange(c *cli.Context) (first, limit int, err error) {
	word := c.Args().Get(1)
	if word == "" {
		return 1, c.Int("limit"), nil
	}
	from, to, isRange := strings.Cut(word, "-")
	if !isRange {
		to = from
	}
	first, err = strconv.Atoi(from)
	limit, errTo := strconv.Atoi(to)
	if err != nil || errTo != nil || first < 1 || limit < first {
		return 0, 0, failure.Usage("%s is no range of turns: 1 is the newest", word).WithHint("`atm history %s 1-5`", c.Args().First())
	}
	if c.IsSet("limit") {
		return 0, 0, failure.Usage("--limit and the range %s contradict each other", word).WithHint("leave one out")
	}
	return first, limit, nil
}
