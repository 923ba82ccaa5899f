package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var historyCommand = &cli.Command{
	Name: "history", Aliases: []string{"turns"}, ArgsUsage: "NAME", Usage: "an agent's turns: when, how long, prompt, response, status",
	UsageText:   "atm history bob\natm history bob --limit 1 --json",
	Description: "What no event has told is left out; --json has prompts and responses whole.",
	Flags:       []cli.Flag{&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 10, Usage: "the newest `N` (default 10); 0: all"}},
	Action:      history,
}

// turnList is what history prints.
type turnList struct {
	Agent wire.Name    `json:"agent"`
	Turns []teams.Turn `json:"turns"`
}

func history(c *cli.Context) error {
	return withAgent(c, func(ctx context.Context, s *command.Scope, box *mailbox.Box) (fmt.Stringer, error) {
		box.TakeIn(ctx) // dropped files may be events
		turns, err := s.Team.History(box.Agent(), c.Int("limit"))
		return turnList{box.Agent(), append([]teams.Turn{}, turns...)}, err
	})
}

func (l turnList) String() string {
	if len(l.Turns) == 0 {
		return fmt.Sprintf("no turn of %s is known", l.Agent)
	}
	var lines []string
	for _, t := range l.Turns {
		lines = append(lines, describeTurn(t))
		if t.Prompt != "" {
			lines = append(lines, "  > "+oneLine(t.Prompt, 160))
		}
		if t.Response != "" {
			lines = append(lines, "  < "+oneLine(t.Response, 160))
		}
	}
	return strings.Join(lines, "\n")
}

func describeTurn(t teams.Turn) string {
	line := ""
	if t.Began != nil {
		line = command.Stamp(*t.Began) + "  "
	}
	if t.Duration > 0 {
		line += letter.Span(t.Duration) + "  "
	}
	line += cmp.Or(t.Status, "over")
	if t.Error != "" {
		line += ": " + oneLine(t.Error, 100)
	}
	if len(t.Messages) > 0 {
		line += "  mail " + command.Shorts(t.Messages)
	}
	return line
}

// oneLine is a text from outside as at most n characters of one line.
func oneLine(text string, n int) string {
	return letter.Clip(letter.Escape(strings.Join(strings.Fields(text), " ")), n)
}
