package session

import (
	"strings"

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

// maxChannel is the longest id of a channel, in bytes.
const maxChannel = 256

func begin(c *cli.Context) error {
	s, options, err := newOptions(c)
	if err != nil {
		return err
	}
	if m, err := s.Team.Summary(options.Agent); err == nil && m.State == reducer.WordPerson {
		return command.Refused("%s is a person: a session is with an agent", options.Agent).WithHint("atm send %s \"…\"", options.Agent)
	}
	if err := s.MayAct("begin a session of", options.Agent); err != nil {
		return err
	}
	if err := s.Team.CheckSessionsAllowed(); err != nil {
		return explain(err)
	}
	if !c.Bool("another") {
		if err := refuseSecond(c, s, options.Agent); err != nil {
			return err
		}
	}
	made, err := s.Team.Sessions().New(c.Context, options)
	if err != nil {
		return explain(err)
	}
	if !c.Bool("json") {
		command.Warn(c, "atm session attach %s", wire.ID(made.SessionID).Short(6))
	}
	return command.Print(c, begun{session{Session: made, log: true}})
}

// newOptions are what the command line says about a new session. The scope's team
// is the agent's.
func newOptions(c *cli.Context) (*command.Scope, sessions.Options, error) {
	o := sessions.Options{Channel: c.String("channel")}
	name := c.String("agent")
	if name == "" {
		name = c.Args().First()
	}
	if name == "" {
		return nil, o, command.Usage("a session with whom?").WithHint("atm session new --agent NAME")
	}
	if c.IsSet("goal") {
		var err error
		if o.Goal, err = wire.ParseUUID(c.String("goal")); err != nil {
			return nil, o, command.Usage("--goal: %q is no UUID", c.String("goal")).
				WithHint("leave it out: any goal that is complete then completes the session")
		}
	}
	if c.IsSet("channel") && (strings.TrimSpace(o.Channel) == "" || len(o.Channel) > maxChannel) {
		return nil, o, command.Usage("--channel is a name of 1 to %d bytes", maxChannel).WithHint("--channel discord:thread:123")
	}
	s, err := command.OpenTeam(c)
	if err != nil {
		return nil, o, err
	}
	box, err := s.Member(name)
	if err != nil {
		return nil, o, err
	}
	o.Agent = box.Agent()
	s.Team, err = s.Root.Team(box.Address().Team)
	return s, o, err
}

// refuseSecond refuses a session beside one that goes on: with two of them the
// agent's name means neither.
func refuseSecond(c *cli.Context, s *command.Scope, agent wire.Name) error {
	alive, err := aliveOf(s, agent)
	if err != nil {
		return err
	}
	for _, one := range alive {
		if now, err := refresh(c.Context, s, one.SessionID); err == nil && now.State.Alive() {
			short := wire.ID(now.SessionID).Short(6)
			return command.Refused("%s has a session already: %s, %s for %s", agent, short, now.State, lived(now)).
				WithHint("atm session attach %s; a second one: atm session new --agent %s --another", short, agent)
		}
	}
	return nil
}

// begun is what new prints: for people the id alone, which a script can keep.
type begun struct {
	Session session `json:"session"`
}

func (b begun) String() string { return string(b.Session.SessionID) }
