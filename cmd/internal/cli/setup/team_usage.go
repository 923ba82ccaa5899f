package setup

import (
	"cmp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// teamUsage is what team --usage prints.
type teamUsage struct {
	Team  wire.Name       `json:"team"`
	Usage []memberUsage   `json:"usage"`
	Sum   reducer.Figures `json:"sum"`
	// Unknown are the agents of whom no program tells anything.
	Unknown []wire.Name `json:"unknown,omitempty"`
}

type memberUsage struct {
	Agent wire.Name `json:"agent"`
	*reducer.Usage
}

func printUsage(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if c.Bool("watch") {
		return failure.Usage("--usage is shown once: no --watch beside it").WithHint("`atm team --usage`")
	}
	all, err := presence.Members(c.Context, s.Team)
	if err := p.WarnUnreadable(err); err != nil {
		return err
	}
	u := teamUsage{Team: s.Team.Name, Usage: []memberUsage{}}
	isMixed := false
	for _, m := range all {
		if m.Usage != nil {
			isMixed = isMixed || m.Usage.Currency != "" && cmp.Or(u.Sum.Currency, m.Usage.Currency) != m.Usage.Currency
			u.Usage, u.Sum = append(u.Usage, memberUsage{m.Name, m.Usage}), u.Sum.Plus(m.Usage.Figures)
		} else if m.Kind == "agent" && !m.Shared {
			u.Unknown = append(u.Unknown, m.Name)
		}
	}
	if isMixed {
		u.Sum.Cost, u.Sum.Currency = 0, "" // amounts in two currencies have no sum
	}
	var lines []string
	if len(u.Usage) > 0 {
		lines = command.Usage(all, u.Sum)
	}
	if len(u.Unknown) > 0 {
		lines = append(lines, "not known: "+app.Join(u.Unknown))
	}
	return p.PrintAs(u, strings.Join(lines, "\n"))
}
