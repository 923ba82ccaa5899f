package mail

import (
	"cmp"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
)

var replyCommand = &cli.Command{
	Name: "reply", Aliases: []string{"respond", "answer"}, ArgsUsage: "ID [TEXT…]", Usage: "answer a message, in its thread",
	UsageText:   `atm reply 9f3a1c "Yes."    9f3a1c is the id in the message's first line`,
	Description: "A reply counts as the ack and marks the message as read.",
	Flags: append(messageFlags(),
		&cli.BoolFlag{Name: "all", Usage: "to all its recipients"},
		cmdline.NoFlag("last latest", "atm read --last and atm ls --all show the ids"),
		cmdline.NoFlag("to", `to the sender: atm reply ID "…"; to somebody else: atm send NAME "…"`),
		cmdline.NoFlag("at in delay schedule later", `a reply is sent now; later: atm send NAME "…" --in 2h --thread ID`),
		cmdline.NoFlag("done", "a reply is the ack as well: leave it out, or atm ack ID --done \"…\""),
	),
	Action: command.With(app.OpenToWrite, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		parent, _, err := s.Find(c.Args().First())
		for _, flag := range []string{"id", "thread"} { // which are of the reply
			if id := c.String(flag); err != nil && app.IsID(id) {
				line, typed := cmdline.LineOf(c), "--"+flag
				hint := cmp.Or(line.Repaired([]string{typed, id}, []string{id}), line.Repaired([]string{typed + "=" + id}, []string{id}))
				return s.Given.Explain(err).WithHint("%s", hint)
			}
		}
		if err != nil {
			return err
		}
		if text := c.Args().Tail(); len(text) > 1 {
			if _, _, notID := s.Find(text[0]); notID == nil {
				return failure.Usage("a reply answers one message, and %s is another", text[0]).
					WithHint("one atm reply for each; a text that begins with an id: put all of it in quotes")
			}
		}
		return send(c, s, p, app.Submission{Parent: parent.Message, ToAll: c.Bool("all")}, c.Args().Tail())
	}),
}
