package mail

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var traceCommand = &cli.Command{
	Name: "trace", Aliases: []string{"track"}, ArgsUsage: "ID", Usage: "how far a message got, and the evidence",
	UsageText: "atm trace 9f3a1c", Action: trace,
	Description: "A stage that is not named has no evidence, which is not the same as no.",
}

type traced struct {
	ID         wire.ID               `json:"id"`
	Recipients []teams.DeliveryTrace `json:"recipients"`

	team wire.Name
}

func trace(c *cli.Context) error {
	s, it, _, err := findNamed(c, command.OpenMeIfSaid)
	if err != nil {
		return err
	}
	return command.Print(c, traced{it.ID, s.Root.Trace(c.Context, it.Message), s.Team.Name})
}

func (t traced) String() string {
	var b strings.Builder
	for _, r := range t.Recipients {
		if len(t.Recipients) > 1 {
			b.WriteString(strings.TrimSuffix(r.To, "@"+string(t.team)) + ": ")
		}
		b.WriteString(stageLine(r) + "\n")
		for _, more := range []string{r.Due, r.Gate} {
			if more != "" {
				b.WriteString("  " + more + "\n")
			}
		}
	}
	return b.String()
}

func stageLine(r teams.DeliveryTrace) string {
	var parts []string
	for _, stage := range r.Stages {
		if stage.Evidence == nil {
			continue
		}
		part := stage.Stage
		if stage.At != nil {
			part += " " + command.Stamp(*stage.At)
		}
		if stage.Text != "" {
			part += ` "` + letter.Clip(letter.Escape(stage.Text), 60) + `"`
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "no evidence"
	}
	if r.State == mailbox.Withdrawn {
		parts = append(parts, "withdrawn")
	}
	return strings.Join(parts, "   ")
}
