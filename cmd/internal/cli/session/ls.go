package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

var lsCommand = &cli.Command{
	Name: "ls", Category: "list", Usage: "list the sessions that are not over",
	UsageText: `atm session ls
atm session ls --all`,
	Flags:  []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "include those that are over"}},
	Action: command.With(app.OpenTeam, list),
}

func list(c *cli.Context, s *app.Scope, p *command.Printer) error {
	all, err := listNow(c.Context, s)
	all = slices.DeleteFunc(all, func(sess *sessions.Session) bool { return !sess.State.Alive() })
	if c.Bool("all") && err == nil {
		var ended []*sessions.Session
		ended, bad, unreadable := s.Team.Sessions().Ended()
		warnOf(s, bad)
		all, err = append(ended, all...), unreadable
	}
	if err != nil {
		return err
	}
	shown, text := []json.RawMessage{}, ""
	for _, sess := range all {
		sess.Messages = nil
		written, err := wire.Marshal(sess.InteractiveSession)
		if err != nil {
			return err
		}
		shown = append(shown, written)
		text += line(sess) + "\n"
	}
	if over := s.Team.Sessions().CountEnded(); over > 0 && !c.Bool("all") {
		text += fmt.Sprintf("%d over: %s", over, p.Command("atm session ls --all"))
	}
	return p.PrintAs(map[string]any{"sessions": shown}, cmp.Or(text, "no sessions: "+p.Command("atm session new --agent NAME")))
}
