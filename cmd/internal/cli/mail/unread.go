package mail

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

var unreadCommand = &cli.Command{
	Name: "unread", Category: "mark-unread unclaim", ArgsUsage: "ID…", Usage: "put read messages back",
	UsageText:   "atm unread 9f3a1c    what is unread: atm ls",
	Description: "A message that you took (atm take) goes back to its inbox.",
	Action: command.With(app.OpenToWrite, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		var items []*wire.Item
		var held []post.Held
		var ids []wire.ID
		for _, word := range c.Args().Slice() {
			m, err := findHeld(c.Context, s, word)
			if err != nil {
				return err
			}
			held, ids = append(held, m), append(ids, m.ID)
		}
		lines, err := forEach(s, ids, func(i int) (line string, err error) {
			m := held[i]
			if line = m.ID.Short(6) + " unread again"; m.IsLeased {
				line = m.ID.Short(6) + " given back to " + string(m.Box.Agent())
				err = claim.EndLease(c.Context, m.Box, m.ID, s.Me.Address())
			} else {
				err = m.Box.MarkUnread(c.Context, m.ID)
			}
			if err = warnUnlogged(p, err); err != nil {
				return "", err
			}
			it, err := m.Box.Get(m.ID)
			if err == nil {
				items = append(items, it)
			}
			return line, err
		})
		return p.Confirming().PrintDone(newListing(p, items, s.Me), lines, err)
	}),
}

// warnUnlogged makes a warning of an error that only an event is missing: the work is done.
func warnUnlogged(p *command.Printer, err error) error {
	if unlogged, ok := errors.AsType[*maildir.UnloggedError](err); ok {
		p.Warn("%v", unlogged)
		return nil
	}
	return err
}
