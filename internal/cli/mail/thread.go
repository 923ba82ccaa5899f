package mail

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
)

var threadCommand = &cli.Command{
	Name: "thread", Aliases: []string{"conversation"}, ArgsUsage: "ID", Usage: "the conversation, in order",
	UsageText:   "atm thread 9f3a1c",
	Description: "Across the team's inboxes. Marks nothing.",
	Flags: []cli.Flag{
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "the last `N`; 0: all"},
	},
	Action: thread,
}

// A listing is printed by lines that were made of it.
type listing struct {
	command.Listing
	text string
}

func (l listing) String() string { return l.text }

func thread(c *cli.Context) error {
	s, err := command.OpenMeIfSaid(c)
	if err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	it, _, err := s.Find(ctx, c.Args().First(), false)
	if err != nil {
		return err
	}
	items, err := s.Team.Thread(ctx, it.ThreadID())
	if err != nil {
		return err
	}
	more := 0
	if n := c.Int("limit"); n > 0 && len(items) > n {
		more = len(items) - n
		items = items[more:]
	}
	var b strings.Builder
	if more > 0 {
		fmt.Fprintf(&b, "%d earlier: atm thread %s\n", more, c.Args().First())
	}
	r := s.Renderer()
	r.To, r.Digits = true, letter.ShortLength(command.IDs(items))
	for i, flags := range command.HeaderFlags(items, nil) {
		b.Write(r.Render(items[i].Message, flags))
	}
	return command.Print(c, listing{command.NewListing(items, more), b.String()})
}
