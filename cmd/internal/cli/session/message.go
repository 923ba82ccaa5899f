package session

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/outlook"
	sessions "github.com/agentteammail/atm/session"
)

var messageCommand = &cli.Command{
	Name: "message", Category: "msg send say", ArgsUsage: "ID [TEXT…]", Usage: "send a message to the session's agent",
	UsageText: `atm session message bob "Focus on auth"`,
	Flags:     []cli.Flag{command.MessageFlag()},
	Action: withSession(app.OpenToWrite, func(c *cli.Context, k *call) error {
		text, err := command.MessageText(c, c.Args().Tail())
		if err != nil {
			return err
		}
		out, err := k.s.SayInSession(c.Context, k.session, text)
		if err != nil {
			return err
		}
		seen := outlook.Of(c.Context, k.s.Root, out.To, out.Message)
		text = seen.Text
		if k.session.State == sessions.Paused {
			text = seen.Why().Map(k.p.Command).String()
		}
		return printSession(k.p.Confirming(), k.session, out.Message.ID, fmt.Sprintf("sent %s to %s (%s)", out.Message.ID.Short(6), k.session.AgentID, text))
	}),
}
