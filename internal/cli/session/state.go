package session

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

var pauseCommand = &cli.Command{
	Name: "pause", ArgsUsage: "ID", Usage: "let it rest; what is said waits",
	UsageText: "atm session pause bob",
	Action:    func(c *cli.Context) error { return changeState(c, wire.SessionPaused) },
}

var completeCommand = &cli.Command{
	Name: "complete", Aliases: []string{"finish", "end"}, ArgsUsage: "ID", Usage: "it has reached its goal",
	UsageText: "atm session complete bob",
	Action:    func(c *cli.Context) error { return changeState(c, wire.SessionCompleted) },
}

// changed is what pause, resume and complete print.
type changed struct {
	Session session `json:"session"`
}

func (v changed) String() string { return v.Session.String() }

func changeState(c *cli.Context, to wire.InteractiveSessionState) error {
	s, one, err := openSession(c)
	if err != nil {
		return err
	}
	if err := s.MayAct(c.Command.Name, wire.Name(one.AgentID)); err != nil {
		return err
	}
	one, err = s.Team.Sessions().Change(c.Context, one.SessionID, func(one *sessions.Session) error {
		return one.Move(to, by(s), time.Now())
	})
	if err != nil {
		return explain(err)
	}
	return command.Print(c, changed{session{Session: one, log: true}})
}
