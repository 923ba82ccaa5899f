package session

import (
	"cmp"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/reducer"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

var newCommand = &cli.Command{
	Name: "new", Aliases: []string{"create", "start", "begin"}, ArgsUsage: "[AGENT]", Usage: "begin one; prints its id",
	UsageText:   "atm session new --agent bob",
	Description: "An agent has one session, unless --another.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "agent", Aliases: []string{"with"}, Usage: "with `NAME`"},
		&cli.StringFlag{Name: "goal", Usage: "the `UUID` of the goal that completes it"},
		&cli.StringFlag{Name: "channel", Value: sessions.DefaultChannel, Usage: "the channel `ID` of its people, such as discord:thread:123"},
		&cli.BoolFlag{Name: "another", Usage: "also where the agent has one"},
	},
	Action: begin,
}

func begin(c *cli.Context) error {
	name := cmp.Or(c.String("agent"), c.Args().First())
	if name == "" {
		return command.Usage("a session with whom?").WithHint("atm session new --agent NAME")
	}
	goal, err := wire.ParseUUID(c.String("goal"))
	if c.IsSet("goal") && err != nil {
		return command.Usage("--goal: %v", err)
	}
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	box, err := s.Member(name)
	if err != nil {
		return err
	}
	if err := mayBegin(c, s, box.Agent()); err != nil {
		return explain(err)
	}
	made, err := s.Team.Sessions().New(c.Context, sessions.Options{Agent: box.Agent(), Goal: goal, Channel: c.String("channel")})
	if err != nil {
		return explain(err)
	}
	command.Warn(c, "atm session attach %s", short(made))
	return command.Print(c, resultOf(made, string(made.SessionID)))
}

// mayBegin refuses a session that nobody could talk in, or that makes the agent's
// name ambiguous.
func mayBegin(c *cli.Context, s *command.Scope, agent wire.Name) error {
	if m, err := s.Team.Summary(agent); err == nil && m.State == reducer.WordPerson {
		return command.Refused("%s is a person: a session is with an agent", agent).WithHint("atm send %s \"…\"", agent)
	}
	if err := s.MayAct("begin a session of", agent); err != nil {
		return err
	}
	if err := s.Team.CheckSessionsAllowed(); err != nil {
		return err
	}
	alive, err := aliveOf(c.Context, s, string(agent))
	if err != nil || len(alive) == 0 || c.Bool("another") {
		return err
	}
	return command.Refused("%s has a session already: %s, %s for %s", agent, short(alive[0]), alive[0].State, lived(alive[0])).
		WithHint("atm session attach %s; a second one: atm session new --agent %s --another", short(alive[0]), agent)
}
