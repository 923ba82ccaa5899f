package mail

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
)

var threadCommand = &cli.Command{
	Name: "thread", Aliases: []string{"conversation"}, ArgsUsage: "ID", Usage: "the conversation, in order",
	UsageText: "atm thread 9f3a1c", Description: "Across the team's inboxes. Marks nothing.", Action: thread,
}

func thread(c *cli.Context) error {
	s, it, _, err := findNamed(c, command.OpenMeIfSaid)
	if err != nil {
		return err
	}
	items, err := s.Team.Thread(c.Context, it.ThreadID())
	if err != nil {
		return err
	}
	r := s.Renderer()
	r.To = true
	return command.Print(c, rendered(r, items, ""))
}
