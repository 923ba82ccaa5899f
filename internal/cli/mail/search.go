package mail

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

var searchCommand = &cli.Command{
	Name: "search", Aliases: []string{"grep", "find"}, ArgsUsage: "WORDS…", Usage: "search every message of the team",
	UsageText:   "atm search flaky test from:alice since:7d\natm search in:new to:bob",
	Description: "All words must be in subject or body, in any case; from:, to:, in:new|cur|done, since:.\nNewest first.",
	Flags: []cli.Flag{
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 20, Usage: "at most `N` (default 20); 0: all"},
		&cli.StringFlag{Name: "from", Hidden: true},
		&cli.StringFlag{Name: "to", Hidden: true},
		&cli.StringFlag{Name: "in", Hidden: true},
		&cli.StringFlag{Name: "since", Hidden: true},
		command.Meant("unread", "atm search WORDS in:new"),
	},
	Action: search,
}

func search(c *cli.Context) error {
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	words := c.Args().Slice()
	for _, key := range []string{"from", "to", "in", "since"} {
		if c.IsSet(key) {
			words = append(words, key+":"+strings.TrimPrefix(c.String(key), "@"))
		}
	}
	query, err := teams.ParseQuery(words, time.Now(), command.ParseDuration)
	if err != nil {
		return command.Usage("%v", err).WithHint("atm search WORDS since:7d")
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	items, err := s.Team.Search(ctx, query)
	if err != nil {
		return err
	}
	more := 0
	if n := c.Int("limit"); n > 0 && len(items) > n {
		more = len(items) - n
		items = items[:n]
	}
	l := listing{Listing: command.NewListing(items, more)}
	lines := lineRenderer{s.Renderer(), true}
	lines.Digits = letter.ShortLength(command.IDs(items))
	var b strings.Builder
	for _, m := range l.Messages {
		b.WriteString(lines.line(m) + "\n")
	}
	if len(items) == 0 {
		b.WriteString("no match\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "%d more: put --limit 0 on the command\n", more)
	}
	l.text = b.String()
	return command.Print(c, l)
}
