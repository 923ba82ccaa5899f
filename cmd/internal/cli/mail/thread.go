package mail

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/mailbox"
)

var threadCommand = &cli.Command{
	Name: "thread", Category: "conversation", ArgsUsage: "ID", Usage: "show a conversation, oldest first",
	UsageText:   "atm thread 9f3a1c",
	Description: "Looks in all inboxes of the team. Marks nothing as read.",
	Flags: []cli.Flag{
		cmdline.CountFlag("limit", 50, "the newest `N` (default 50, with --json all); 0: all", "all", "n"),
	},
	Action: command.With(app.OpenMeIfGiven, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		limit := c.Int("limit")
		if p.IsJSON && !c.IsSet("limit") {
			limit = 0 // a program wants all of it
		}
		return Thread(c.Context, s, p, c.Args().First(), limit)
	}),
}

// Thread prints the thread of a message, of a limit the newest messages; 0: all.
func Thread(ctx context.Context, s *app.Scope, p *command.Printer, word string, limit int) error {
	id, err := FindThread(s, word)
	if err != nil {
		return err
	}
	s.Team.Progress = p.Progress("searching: %d messages")
	items, err := search.Thread(ctx, s.Team, id)
	if err := p.WarnUnreadable(err); err != nil {
		return err
	}
	if len(items) == 0 {
		return fmt.Errorf("thread %s: %w", id, mailbox.ErrNotFound)
	}
	r := p.Renderer(s)
	r.Whole = true
	return printLetters(s, p, r, items, limit, "")
}
