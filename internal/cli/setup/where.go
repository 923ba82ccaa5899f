package setup

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

var whereCommand = &cli.Command{
	Name: "where", Aliases: []string{"whoami", "pwd"}, Usage: "root, team and agent in force, and the source of each",
	UsageText: "atm where",
	Action:    where,
}

type rootSource struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

type nameSource struct {
	Name   wire.Name `json:"name"`
	Source string    `json:"source"`
}

// inForce is what where prints.
type inForce struct {
	Root  rootSource  `json:"root"`
	Team  *nameSource `json:"team,omitempty"`
	Agent *nameSource `json:"agent,omitempty"`

	noTeam string // why there is none
}

func (f inForce) String() string {
	text := fmt.Sprintf("root   %s (%s)\n", letter.Escape(f.Root.Path), letter.Escape(f.Root.Source))
	if f.Team == nil {
		return text + "team   none: " + letter.Escape(f.noTeam)
	}
	text += fmt.Sprintf("team   %s (%s)\n", f.Team.Name, f.Team.Source)
	if f.Agent == nil {
		return text + "agent  none: put --as NAME on the command, or set ATM_AGENT"
	}
	return text + fmt.Sprintf("agent  %s (%s)", f.Agent.Name, f.Agent.Source)
}

func where(c *cli.Context) error {
	s, err := command.OpenMe(c)
	if s == nil {
		return err
	}
	var e *command.Error
	isOpen := errors.As(err, &e) && e.Exit == command.ExitUsage // nobody said which team, or who
	if err != nil && (c.IsSet("as") || !isOpen) {
		return err
	}
	f := inForce{Root: rootSource{s.Root.Path, s.Root.Source}}
	if s.Team != nil {
		f.Team = &nameSource{s.Team.Name, s.TeamSource}
	} else {
		f.noTeam = e.Message
	}
	if s.Me != nil {
		f.Agent = &nameSource{s.Me.Agent(), s.MeSource}
	}
	return command.Print(c, f)
}
