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
	s, err := openToWrite(c)
	if err != nil {
		return err
	}
	parent, _, err := s.Find(c.Context, c.Args().First(), false)
	if err != nil {
		return err
	}
	m, err := compose(c, s, c.Args().Tail())
	if err != nil {
		return err
	}
	return deliver(c, s, &teams.Outgoing{
		From: s.Me, To: teams.ReplyTo(parent.Message, s.Me.Address(), c.Bool("all")), Message: m,
		Given: c.IsSet("id"), Parent: parent.Message, Person: command.Person(),
	})
}
