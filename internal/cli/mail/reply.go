package mail

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/teams"
)

var replyCommand = &cli.Command{
	Name: "reply", Aliases: []string{"respond", "answer"}, ArgsUsage: "ID [TEXT…]", Usage: "answer a message, in its thread",
	UsageText:   "atm reply 9f3a1c \"Rebased.\"",
	Description: "Answering what wants an ack is the ack; answering unread mail reads it.",
	Flags: append(messageFlags(),
		&cli.BoolFlag{Name: "all", Usage: "to every recipient as well"},
		command.Meant("to", "atm reply answers the sender; atm send NAME \"…\" writes to anybody"),
	),
	Action: reply,
}

func reply(c *cli.Context) error {
	s, parent, _, err := findNamed(c, openToWrite)
	if err != nil {
		return err
	}
	to := teams.ReplyTo(parent.Message, s.Me.Address(), c.Bool("all"))
	return compose(c, s, &teams.Outgoing{To: to, Parent: parent.Message}, c.Args().Tail())
}
