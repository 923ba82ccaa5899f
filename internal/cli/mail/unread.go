package mail

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
)

var unreadCommand = &cli.Command{
	Name: "unread", ArgsUsage: "ID…", Usage: "put read messages back",
	UsageText:   "atm unread 9f3a1c",
	Description: "What you took (atm take) is given back.",
	Action:      unread,
}

func unread(c *cli.Context) error {
	s, err := openToWrite(c)
	if err != nil {
		return err
	}
	found, err := findMineOrTaken(c, s)
	if err != nil {
		return err
	}
	var items []*mailbox.Item
	var lines []string
	for _, h := range found {
		line, err := h.putBack(c, s)
		if err != nil {
			return err
		}
		now, err := h.box.Get(h.ID)
		if err != nil {
			return err
		}
		lines = append(lines, h.ID.Short(6)+" "+line)
		items = append(items, now)
	}
	return command.Print(c, listing{command.NewListing(items, 0), strings.Join(lines, "\n")})
}

func (h held) putBack(c *cli.Context, s *command.Scope) (line string, err error) {
	if h.taken {
		return "given back to " + string(h.box.Agent()), h.box.EndLease(c.Context, h.ID, s.Me.Address())
	}
	if h.State == "" {
		return "", command.Refused("message %s is one that you sent", h.ID.Short(6)).
			WithHint("atm withdraw %s%s takes it back", h.ID.Short(6), s.Flags())
	}
	moved, err := h.box.MarkUnread(c.Context, h.ID)
	if moved {
		return "unread again", err
	}
	return "was unread", err
}
