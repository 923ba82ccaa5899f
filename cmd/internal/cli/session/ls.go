package session

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/wire"
)

var lsCommand = &cli.Command{
	Name: "ls", Aliases: []string{"list"}, Usage: "list the sessions that are not over",
	UsageText: `atm session ls
atm session ls --all`,
	Flags:  []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "include those that are over"}},
	Action: command.With(app.OpenTeam, list),
}

func list(c *cli.Context, s *app.Scope, p *command.Printer) error {
	withAll := c.Bool("all")
	all, err := listNow(c.Context, s)
	if err != nil {
		return err
	}
	shown, text := []json.RawMessage{}, ""
	for _, sess := range all {
		if sess.State.Alive() || withAll {
			sess.Messages = nil
			written, err := wire.Marshal(sess.InteractiveSession)
			if err != nil {
				return err
			}
			shown = append(shown, written)
			text += line(sess) + "\n"
		}
	}
	if over := len(all) - len(shown); over > 0 {
		text += fmt.Sprintf("%d over: %s", over, p.Command("atm session ls --all"))
	}
	return p.PrintAs(map[string]any{"sessions": shown}, cmp.Or(text, "no sessions: "+p.Command("atm session new --agent NAME")))
}
