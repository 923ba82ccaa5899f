package mail

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
)

var unreadCommand = &cli.Command{
	Name: "unread", ArgsUsage: "ID…", Usage: "put read messages back",
	UsageText: "atm unread 9f3a1c", Description: "What you took (atm take) is given back.", Action: unread,
}

func unread(c *cli.Context) error {
	s, found, err := findMineOrTaken(c)
	if err != nil {
		return err
	}
	l := listing{Listing: command.NewListing(nil, 0)}
	for _, h := range found {
		line := " unread again\n"
		if h.taken {
			line = " given back to " + string(h.box.Agent()) + "\n"
			err = h.box.EndLease(c.Context, h.ID, s.Me.Address())
		} else {
			err = h.box.MarkUnread(c.Context, h.ID)
		}
		if err != nil {
			return err
		}
		now, err := h.box.Get(h.ID)
		if err != nil {
			return err
		}
		l.text += h.ID.Short(6) + line
		l.Messages = append(l.Messages, command.Message{Item: now})
	}
	return command.Print(c, l)
}
