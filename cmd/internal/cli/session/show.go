package session

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/aswire"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/letter"
	sessions "github.com/agentteammail/atm/session"
)

var showCommand = &cli.Command{
	Name: "show", Category: "cat log logs info history status", ArgsUsage: "ID", Usage: "show a session and its log",
	UsageText: "atm session show bob",
	Flags: []cli.Flag{
		cmdline.CountFlag("limit", 50, "the last `N` log entries (default 50); 0: all", "all", "n"),
		cmdline.ChoiceFlag("as-wire", "`acp`: the agent's ACP session, as that wire has it", "acp"),
	},
	Action: func(c *cli.Context) error {
		if c.IsSet("as-wire") {
			return command.With(app.OpenTeam, showACP)(c)
		}
		return show(c)
	},
}

func showACP(c *cli.Context, s *app.Scope, p *command.Printer) error {
	word := c.Args().First() // an agent, or a session with one
	if id, err := s.Team.Sessions().Find(word); err == nil {
		sess, err := s.Team.Sessions().Get(id)
		if err != nil {
			return err
		}
		word = sess.AgentID
	}
	b, err := s.EnterTeamOf(word)
	if err != nil {
		return err
	}
	raw, err := aswire.ACPSession(s.Team, b.Agent())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Out, string(command.EscapeJSON(raw)))
	return err
}

var show = withSession(app.OpenTeam, func(c *cli.Context, k *call) error {
	sess, limit := k.session, c.Int("limit")
	text := fmt.Sprintf("session %s with %s: %s, %s\nchannel %s", sess.SessionID, sess.AgentID, sess.State, age(sess), letter.Escape(sess.ChannelID))
	if sess.GoalID != sessions.NoGoal {
		text += ", goal " + string(sess.GoalID)
	}
	if err := k.s.Team.Sessions().Said(c.Context, sess); err != nil {
		k.p.Warn("what was said cannot be read: %v", err)
	}
	entries := sess.Messages
	if limit > 0 {
		entries = entries[max(len(entries)-limit, 0):]
	}
	if before := len(sess.Messages) - len(entries); before > 0 {
		text += fmt.Sprintf("\n… %d earlier", before)
	}
	for _, m := range entries {
		text += "\n" + entry{m, sess.AgentID}.String()
	}
	return printSession(k.p, sess, "", text)
})
