package mail

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/setaside"
)

var retryCommand = &cli.Command{
	Name: "retry", Aliases: []string{"redeliver"}, ArgsUsage: "[ID|FILE]", Usage: "try again what was set aside; alone: list that",
	UsageText: `atm retry
atm retry 9f3a1c
atm retry bob/notes.json`,
	Description: `What was set aside: files that are not messages, mail that was typed in and not accepted,
messages of other machines that the bridge rejected.
Mend the cause first: the reason is beside it. Nobody gets twice what they got before.`,
	Action: command.With(app.OpenMeIfGiven, retry),
}

func retry(c *cli.Context, s *app.Scope, p *command.Printer) error {
	word := c.Args().First()
	if word == "" {
		return listSetAside(c, s, p)
	}
	one, err := s.FindSetAside(c.Context, word)
	if err != nil {
		return err
	}
	did, err := s.Retry(c.Context, one)
	if err != nil {
		return err
	}
	return p.PrintAs(map[string]any{"retried": did}, did.Text())
}

func listSetAside(c *cli.Context, s *app.Scope, p *command.Printer) error {
	all, err := setaside.List(c.Context, s.Team)
	if err := p.WarnUnreadable(err); err != nil {
		return err
	}
	text := "nothing is set aside"
	var lines []string
	for _, one := range all {
		about := string(one.Kind)
		if one.Kind != setaside.Envelope {
			about += " of " + string(one.Agent)
		}
		lines = append(lines, fmt.Sprintf("%s: %s: %s", letter.Escape(one.Short()), about, letter.OneLine(one.Reason, 160)))
	}
	if len(lines) > 0 {
		text = strings.Join(append(lines, "to try one again: "+letter.Escape(p.Command(app.RetryCommand(&all[0])))), "\n")
	}
	return p.PrintAs(map[string]any{"set_aside": append([]setaside.Item{}, all...)}, text)
}
