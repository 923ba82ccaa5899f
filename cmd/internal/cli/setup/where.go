package setup

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/letter"
)

var whereCommand = &cli.Command{
	Name: "where", Category: "whoami pwd env id", Usage: "show the root, team and agent in force, and the source of each",
	UsageText: "atm where",
	Action:    where,
}

func where(c *cli.Context) error {
	p := command.PrinterOf(c)
	s, missing, err := app.OpenOptional(p.Given)
	if s == nil {
		return err
	}
	document := map[string]map[string]string{"root": {"path": s.Root.Path, "source": s.Root.Source}, "team": nil, "agent": nil}
	team, agent := "none", "none: put --as NAME on the command, or set ATM_AGENT"
	if s.Team != nil {
		document["team"] = map[string]string{"name": string(s.Team.Name), "source": s.TeamSource}
		team = fmt.Sprintf("%s (%s)", s.Team.Name, s.TeamSource)
	} else if missing != nil {
		team += ": " + letter.Escape(missing.Message)
	}
	if name, source := p.Identity(); name != "" {
		about := source
		if s.Me != nil {
			name = string(s.Me.Agent())
		} else if s.Team != nil {
			about += "; not a member"
		}
		document["agent"] = map[string]string{"name": name, "source": source}
		agent = fmt.Sprintf("%s (%s)", letter.Escape(name), about)
	}
	text := fmt.Sprintf("root   %s (%s)\nteam   %s\nagent  %s", letter.Escape(s.Root.Path), letter.Escape(s.Root.Source), team, agent)
	return p.PrintDone(document, text, err)
}
