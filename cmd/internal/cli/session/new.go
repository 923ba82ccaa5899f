package session

import (
	"cmp"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/policy"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

var newCommand = &cli.Command{
	Name: "new", Category: "create start begin", ArgsUsage: "[AGENT]", Usage: "start a session and print its id",
	UsageText:   "atm session new --agent bob",
	Description: "An agent has one session, unless you say --another.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "agent", Usage: "the agent's `NAME`"},
		&cli.StringFlag{Name: "goal", Usage: "`UUID` of the goal; reaching it completes the session"},
		&cli.StringFlag{Name: "channel", Value: sessions.DefaultChannel, Usage: "the channel `ID` of its people, such as discord:thread:123"},
		&cli.BoolFlag{Name: "another", Usage: "start one even if the agent has one"},
	},
	Action: command.With(app.OpenTeam, begin),
}

func begin(c *cli.Context, s *app.Scope, p *command.Printer) error {
	o := sessions.Options{Channel: c.String("channel"), Alone: !c.Bool("another")}
	name := cmp.Or(c.String("agent"), c.Args().First())
	if c.IsSet("agent") && (name == "" || c.Args().Present()) {
		return failure.Usage("session new needs one agent").WithHint("`atm session new --agent NAME`")
	}
	if name == "" {
		return failure.Usage("session new needs one agent").WithHint("%s", cmdline.LineOf(c).Completed("NAME"))
	}
	var err error
	if o.Goal, err = wire.ParseUUID(c.String("goal")); c.IsSet("goal") && err != nil {
		return failure.Usage("--goal: %v", err).WithHint("leave it out, and say the goal: `atm session message %s \"…\"`", name)
	}
	box, err := s.EnterTeamOf(name)
	if err != nil {
		return err
	}
	o.Agent = box.Agent()
	if err := cmp.Or(s.MayAct(policy.Begin, o.Agent), s.Team.CheckSessionsAllowed(o.Agent)); err != nil {
		return err
	}
	if _, err := listNow(c.Context, s); err != nil { // ends sessions that have timed out
		return err
	}
	made, err := s.Team.Sessions().New(c.Context, o)
	if e, ok := errors.AsType[*sessions.SessionExistsError](err); ok { // the agent's name would be ambiguous
		return failure.Refused("%w: %s, %s for %s", err, short(e.Other), e.Other.State, age(e.Other)).
			WithHint("`atm session attach %s`; for a second one: `atm session new --agent %s --another`", short(e.Other), o.Agent)
	}
	if err != nil {
		return err
	}
	p.Warn("`atm session attach %s`", short(made))
	return printSession(p, made, "", string(made.SessionID))
}
