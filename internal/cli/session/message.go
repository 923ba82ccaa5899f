package session

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var messageCommand = &cli.Command{
	Name: "message", Aliases: []string{"msg", "send", "say"}, ArgsUsage: "ID [TEXT…]", Usage: "say something to its agent",
	UsageText: "atm session message bob \"Focus on auth\"",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "message", Aliases: []string{"m", "body", "text"}, Usage: "`TEXT` as a flag"},
	},
	Action: message,
}

func message(c *cli.Context) error {
	s, one, err := open(c, true)
	if err != nil {
		return err
	}
	words := c.Args().Tail()
	if c.IsSet("message") {
		words = append(words, c.String("message"))
	}
	text, err := command.StdinText(c, words)
	if err != nil {
		return err
	}
	out, err := say(c, s, one.SessionID, wire.HumanInput{Kind: "message", Text: text})
	if err != nil {
		return err
	}
	outlook := "the session is paused: it waits for atm session resume " + short(one)
	if one.State != wire.SessionPaused {
		m, _ := s.Team.Summary(wire.Name(one.AgentID))
		outlook = m.Forecast(time.Now(), false)
	}
	r := resultOf(one, fmt.Sprintf("sent %s to %s (%s)", out.Message.ID.Short(6), one.AgentID, outlook))
	r.ID = out.Message.ID
	return command.Print(c, r)
}

func abort(c *cli.Context) error {
	s, one, err := openToAct(c, true)
	if err != nil {
		return err
	}
	out, err := say(c, s, one.SessionID, wire.HumanInput{Kind: "abort"})
	if err != nil {
		return err
	}
	if out.Session != nil {
		one = out.Session
	}
	r := resultOf(one, "aborted; its agent is gone")
	if out.Message != nil {
		r.ID, r.text = out.Message.ID, fmt.Sprintf("aborted; sent %s to %s", out.Message.ID.Short(6), one.AgentID)
	}
	return command.Print(c, r)
}

// say says something in a session as me.
func say(c *cli.Context, s *command.Scope, id wire.UUID, in wire.HumanInput) (teams.SessionResult, error) {
	out, err := s.Team.Say(c.Context, id, teams.SessionInput{From: s.Me, Input: in, Origin: s.Origin(), Person: command.Person()})
	if err == nil && out.Unlogged != nil {
		command.Warn(c, "sent; the session's log could not be written: %v", out.Unlogged)
	}
	return out, explain(err)
}
