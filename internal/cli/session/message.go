package session

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	sessions "github.com/agentteammail/atm/session"
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

var abortCommand = &cli.Command{
	Name: "abort", Aliases: []string{"cancel"}, ArgsUsage: "ID", Usage: "end it, and stop its agent",
	UsageText: "atm session abort bob",
	Action:    abort,
}

func message(c *cli.Context) error {
	s, err := openToSpeak(c)
	if err != nil {
		return err
	}
	id, err := find(s, c.Args().First())
	if err != nil {
		return err
	}
	words := c.Args().Tail()
	if c.IsSet("message") && len(words) > 0 {
		return command.Usage("--message and a text contradict each other").WithHint("leave one out")
	}
	if c.IsSet("message") {
		words = []string{c.String("message")}
	}
	text, err := command.StdinText(c, words)
	if err != nil {
		return err
	}
	out, err := s.Team.Say(c.Context, id, input(s, wire.HumanInput{Kind: "message", Text: text}))
	if err != nil {
		return explain(err)
	}
	return command.Print(c, deliveredOf(c, s, out, false))
}

// input is what I say to a session.
func input(s *command.Scope, in wire.HumanInput) teams.SessionInput {
	return teams.SessionInput{From: s.Me, Input: in, Origin: s.Origin(), Person: command.Person()}
}

func abort(c *cli.Context) error {
	s, err := openToSpeak(c)
	if err != nil {
		return err
	}
	id, err := find(s, c.Args().First())
	if err != nil {
		return err
	}
	one, err := s.Team.Sessions().Get(id)
	if err != nil {
		return explain(err)
	}
	agent := wire.Name(one.AgentID)
	if err := s.MayAct("abort", agent); err != nil {
		return err
	}
	ran, _ := s.Team.Running(agent) // it may be stopped before this can say so
	out, err := s.Team.Say(c.Context, id, input(s, wire.HumanInput{Kind: "abort"}))
	if err != nil {
		return explain(err)
	}
	return command.Print(c, deliveredOf(c, s, out, ran))
}

// delivered is what message and abort print.
type delivered struct {
	Delivered bool     `json:"delivered"`
	ID        wire.ID  `json:"id,omitempty"`
	To        string   `json:"to,omitempty"`
	Session   *session `json:"session,omitempty"`

	text string
}

func (d delivered) String() string { return d.text }

// deliveredOf says what became of something that was said. stops: an abort stops
// the session's agent.
func deliveredOf(c *cli.Context, s *command.Scope, out teams.SessionResult, stops bool) delivered {
	if out.Unlogged != nil {
		command.Warn(c, "delivered; the session's log could not be written: %v", out.Unlogged)
	}
	var d delivered
	isAborted := false
	if out.Session != nil {
		d.Session = &session{Session: out.Session}
		isAborted = out.Session.State == wire.SessionAborted
	}
	if out.Message == nil {
		d.text = "aborted; its agent is gone"
		return d
	}
	to := out.Message.To[0]
	d.Delivered, d.ID, d.To = true, out.Message.ID, to.String()
	d.text = fmt.Sprintf("sent %s to %s (%s)", d.ID.Short(6), to.Agent, outlook(s, to.Agent, out.Session, stops && isAborted))
	if isAborted {
		d.text = "aborted; " + d.text
	}
	return d
}

// outlook is when the agent is likely to see what was said.
func outlook(s *command.Scope, agent wire.Name, one *sessions.Session, isStopped bool) string {
	if one != nil && one.State == wire.SessionPaused {
		return "the session is paused: it waits for atm session resume " + wire.ID(one.SessionID).Short(6)
	}
	if isStopped {
		return "which is stopped with all that it started"
	}
	m, err := s.Team.Summary(agent)
	if err != nil {
		return "its agent is gone"
	}
	return m.Forecast(time.Now(), false)
}
