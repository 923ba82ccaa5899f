package mail

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/teams"
)

var replyCommand = &cli.Command{
	Name: "reply", Category: "respond answer comment\nreply-all replyall    atm reply ID \"…\" --all\n--payload --type --meta    a field of a line of atm send --batch", ArgsUsage: "ID [TEXT…]", Usage: "answer a message, in its thread",
	UsageText:   `atm reply 9f3a1c "Yes."    9f3a1c is the id in the message's first line`,
	Description: "A reply counts as the ack and marks the message as read.",
	Flags: slices.Concat(messageFlags, []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "to all its recipients"},
	}),
	Action: command.With(app.OpenToWrite, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		parent, _, err := s.Find(c.Args().First())
		if err != nil {
			return err
		}
		if text := c.Args().Tail(); len(text) > 1 {
			if _, _, notID := s.Find(text[0]); notID == nil {
				return failure.Usage("a reply answers one message, and %s is another", text[0]).
					WithHint("one atm reply for each; a text that begins with an id: put all of it in quotes")
			}
		}
		return send(c, s, p, teams.Message{Answers: parent.Message, ToAll: c.Bool("all")}, c.Args().Tail())
	}),
}
