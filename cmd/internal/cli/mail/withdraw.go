package mail

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
)

var withdrawCommand = &cli.Command{
	Name: "withdraw", Category: "! unsend recall retract undo cancel delete", ArgsUsage: "ID", Usage: "take back a message that you sent",
	UsageText: "atm withdraw 9f3a1c",
	Description: `If it is unread, it is removed from the inbox. If it is read, taken (atm take) or sent to another
machine, the recipient gets a notice. If it is acked, nothing changes: exit 5.`,
	Action: command.With(app.OpenToWrite, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		m, err := s.FindSent(c.Args().First())
		if err != nil {
			return err
		}
		out, err := s.Withdraw(c.Context, m)
		if err != nil {
			return err
		}
		warn(p, out)
		const did = "withdrawn from"
		return p.Confirming().PrintDone(out, out.Text(did), out.Err(did))
	}),
}
