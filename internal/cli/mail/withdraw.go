package mail

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
)

var withdrawCommand = &cli.Command{
	Name: "withdraw", Aliases: []string{"unsend", "recall", "retract", "undo"}, ArgsUsage: "ID", Usage: "take a message of yours back",
	UsageText:   "atm withdraw 9f3a1c",
	Description: "Unread: it is taken out of the inbox. Read: the reader gets a notice. Acked: refused, exit 5.",
	Action:      withdraw,
}

func withdraw(c *cli.Context) error {
	s, err := openToWrite(c)
	if err != nil {
		return err
	}
	it, err := mySent(c.Context, s, c.Args().First())
	if err != nil {
		return err
	}
	r := newResult(s, it.ID, "withdrawn from")
	for _, to := range it.To {
		d := delivered{To: to.String(), State: "withdrawn", note: "unread"}
		state, err := s.Root.Withdraw(c.Context, s.Me, it.Message, to, s.Origin())
		if err == nil && state == "" {
			err = command.Refused("message %s is acknowledged", it.ID.Short(6)).WithHint("atm reply %s \"…\"%s", it.ID.Short(6), s.Flags())
		}
		if err != nil {
			r.missed(c, to, err)
			continue
		}
		if state == mailbox.Withdrawn {
			d.note = "before"
		} else if state != mailbox.Unread {
			d.State, d.note = "notified", "read: a notice was sent"
		}
		r.Delivered = append(r.Delivered, d)
	}
	return r.print(c)
}
