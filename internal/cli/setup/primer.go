package setup

import (
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var primerCommand = &cli.Command{
	Name: "primer", Usage: "what an agent needs to know",
	UsageText: "atm primer --as bob",
	Action:    primer,
}

type primerText struct {
	Primer string `json:"primer"`
}

func (p primerText) String() string { return p.Primer }

func primer(c *cli.Context) error {
	s, err := command.OpenMe(c)
	var e *command.Error
	isUnsaid := errors.As(err, &e) && e.Exit == command.ExitUsage && s != nil && s.Team != nil
	if err != nil && !isUnsaid {
		return err
	}
	s.WarnUnaccepted()
	var me wire.Name
	by := teams.Nothing
	if s.Me != nil {
		me = s.Me.Agent()
		by = teams.Runner
		if os.Getenv("ATM_RUN") == "" {
			by = s.Team.BroughtBy(me)
		}
	}
	text, err := s.Team.Primer(me, by, s.MeSource == "--as")
	if err != nil {
		return err
	}
	return command.Print(c, primerText{text})
}
