package agent

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var historyCommand = &cli.Command{
	Name: "history", Aliases: []string{"turns"}, ArgsUsage: "NAME", Usage: "an agent's turns: when, how long, prompt, response, status",
	UsageText:   "atm history bob\natm history bob --limit 1 --full",
	Description: "What no event has told is left out.",
	Flags: []cli.Flag{
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 10, Usage: "the newest `N` (default 10); 0: all"},
		&cli.BoolFlag{Name: "full", Usage: "prompts and responses whole"},
	},
	Action: history,
}

// turnList is what history prints.
type turnList struct {
	Agent wire.Name    `json:"agent"`
	Turns []teams.Turn `json:"turns"`

	full bool
}

func history(c *cli.Context) error {
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	box.TakeIn(c.Context) // dropped files may be events
	turns, err := s.Team.History(box.Agent(), c.Int("limit"))
	if err != nil {
		return err
	}
	if turns == nil {
		turns = []teams.Turn{}
	}
	return command.Print(c, turnList{Agent: box.Agent(), Turns: turns, full: c.Bool("full")})
}

func (l turnList) String() string {
	if len(l.Turns) == 0 {
		return fmt.Sprintf("no turn of %s is known", l.Agent)
	}
	var b strings.Builder
	for _, t := range l.Turns {
		b.WriteString(turnLine(t, l.full) + "\n")
		writeQuoted(&b, "  > ", promptOf(t, l.full), l.full)
		writeQuoted(&b, "  < ", t.Response, l.full)
	}
	return b.String()
}

func turnLine(t teams.Turn, full bool) string {
	var parts []string
	if t.Began != nil {
		parts = append(parts, command.Stamp(*t.Began))
	} else if t.Ended != nil {
		parts = append(parts, "until "+command.Stamp(*t.Ended))
	}
	if t.Duration > 0 {
		parts = append(parts, letter.Span(t.Duration))
	}
	status := t.Status
	if status == "" {
		status = "over"
	}
	if t.Error != "" {
		status += ": " + letter.Clip(letter.Escape(t.Error), 100)
	}
	parts = append(parts, status)
	if len(t.Messages) > 0 {
		parts = append(parts, "mail "+command.Shorts(t.Messages))
	}
	if full {
		parts = append(parts, letter.Escape(t.ID))
	}
	return strings.Join(parts, "  ")
}

func writeQuoted(b *strings.Builder, mark, text string, full bool) {
	if text == "" {
		return
	}
	if !full {
		text = letter.Clip(letter.Escape(strings.Join(strings.Fields(text), " ")), 160)
	}
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(mark + letter.Escape(line) + "\n")
	}
}

// promptOf is what a turn began with, without the line of atm's above a message
// that was typed in: the turn's own line says as much.
func promptOf(t teams.Turn, full bool) string {
	line, body, found := strings.Cut(t.Prompt, "\n")
	if full || !found || len(t.Messages) != 1 || !strings.HasPrefix(line, "[atm "+t.Messages[0].Short(6)) {
		return t.Prompt
	}
	return body
}
