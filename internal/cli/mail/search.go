package mail

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/teams"
)

var searchCommand = &cli.Command{
	Name: "search", Aliases: []string{"grep", "find"}, ArgsUsage: "WORDS…", Usage: "search every message of the team",
	UsageText:   "atm search flaky test from:alice since:7d\natm search in:new to:bob",
	Description: "All words must be in subject or body, in any case; from:, to:, in:new|cur|done, since:.\nNewest first.",
	Flags: []cli.Flag{
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 20, Usage: "at most `N` (default 20); 0: all"},
		command.Meant("from", "atm search WORDS from:NAME"),
		command.Meant("to", "atm search WORDS to:NAME"),
		command.Meant("since", "atm search WORDS since:7d"),
	},
	Action: search,
}

func search(c *cli.Context) error {
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	query, err := teams.ParseQuery(c.Args().Slice(), time.Now(), command.ParseDuration)
	if err != nil {
		return command.Usage("%v", err).WithHint("atm search WORDS since:7d")
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	items, err := s.Team.Search(ctx, query, func() {})
	if err != nil {
		return err
	}
	items, more := limited(c, items)
	r := s.Renderer()
	r.To = true
	return command.Print(c, lines(r, command.NewListing(items, 0).Messages, more, "no match"))
}
