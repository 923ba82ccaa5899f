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
	it, _, err := s.Find(c.Context, c.Args().First(), false)
	if err != nil {
		return err
	}
	short := it.ID.Short(6)
	if it.From != s.Me.Address() {
		return command.Refused("message %s is from %s: only its sender withdraws it", short, it.From).
			WithHint("atm reply %s \"…\"%s", short, s.Flags())
	}
	r := newResult(s, it.ID, "withdrawn from")
	for _, w := range s.Root.Withdraw(c.Context, s.Me, it.Message, s.Origin()) {
		d := delivered{To: w.To.String(), State: "withdrawn", note: "unread"}
		switch {
		case w.Err != nil:
			r.missed(c, w.To, w.Err)
			continue
		case w.State == "":
			r.missed(c, w.To, command.Refused("message %s is acknowledged", short).WithHint("atm reply %s \"…\"%s", short, s.Flags()))
			continue
		case w.State == mailbox.Withdrawn:
			d.note = "before"
		case w.State != mailbox.Unread:
			d.State, d.note = "notified", "read: a notice was sent"
		}
		r.Delivered = append(r.Delivered, d)
	}
	return r.print(c)
}
