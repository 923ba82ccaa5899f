package mail

import (
	"cmp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/outlook"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

var traceCommand = &cli.Command{
	Name: "trace", Category: "track receipt receipts delivered", ArgsUsage: "ID", Usage: "how far a message got, and the evidence",
	UsageText:   "atm trace 9f3a1c",
	Description: "A stage without evidence is left out; it may have been reached all the same.",
	Action: command.With(app.OpenMeIfGiven, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		it, _, err := s.Find(c.Args().First())
		if err != nil {
			return err
		}
		recipients, text, answers := []outlook.Trace{}, "", post.AnswersTo(c.Context, s.Root, it.Message)
		for _, to := range it.To {
			r := outlook.TraceOf(answers, s.Root, it.Message, to, app.RunCommand)
			r.Gate = r.Gate.Map(p.Command)
			recipients = append(recipients, r)
			if len(it.To) > 1 {
				text += p.Renderer(s).Called(r.To) + ": "
			}
			text += stagesText(r) + "\n"
			for _, more := range []string{r.Due, r.Gate.String()} {
				if more != "" {
					text += "  " + more + "\n"
				}
			}
		}
		return p.PrintAs(map[string]any{"id": it.ID, "recipients": recipients}, text)
	}),
}

// stagesText lists in a line the stages of a delivery that there is evidence for.
func stagesText(r outlook.Trace) string {
	var parts []string
	for _, stage := range r.Stages {
		if stage.Evidence == "" {
			continue
		}
		part := cmp.Or(stage.Outcome, stage.Name)
		if !stage.At.IsZero() {
			part += " " + letter.Stamp(stage.At)
		}
		if stage.Host != "" {
			part += " at " + string(stage.Host)
		}
		if stage.Text != "" {
			part += " " + letter.Quote(stage.Text, 60)
		}
		parts = append(parts, part)
	}
	switch {
	case len(parts) == 0:
		return "no evidence"
	case r.State == wire.Withdrawn:
		parts = append(parts, "withdrawn")
	case r.State == wire.Unread && r.Reached("read"):
		parts = append(parts, "unread again")
	}
	return strings.Join(parts, "   ")
}
