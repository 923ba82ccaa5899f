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
		&cli.StringFlag{Name: "from", Hidden: true}, &cli.StringFlag{Name: "to", Hidden: true}, &cli.StringFlag{Name: "since", Hidden: true},
	},
	Action: search,
}

func search(c *cli.Context) error {
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	words := c.Args().Slice()
	for _, key := range []string{"from", "to", "since"} {
		if c.IsSet(key) {
			words = append(words, key+":"+c.String(key))
		}
	}
	query, err := teams.ParseQuery(words, time.Now(), command.ParseDuration)
	if err != nil {
		return command.Usage("%v", err).WithHint("atm search WORDS since:7d")
	}
	items, err := s.Team.Search(c.Context, query)
	if err != nil {
		return err
	}
	r := s.Renderer()
	r.To = true
	return command.Print(c, lines(c, r, command.NewListing(items, 0), "no match"))
}
