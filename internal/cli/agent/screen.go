package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

var screenCommand = &cli.Command{
	Name: "screen", Aliases: []string{"capture", "peek"}, ArgsUsage: "NAME", Usage: "what an agent's terminal shows, as text",
	UsageText:   "atm screen bob\natm screen bob --last 200",
	Description: "--json: lines, cursor (from 0), title, state.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "ansi", Usage: "with colours, as the agent wrote them"},
		&cli.IntFlag{Name: "last", Aliases: []string{"limit", "n"}, Usage: "the last `N` lines, also of what scrolled away"},
	},
	Action: screen,
}

// shownScreen is what screen prints.
type shownScreen struct {
	Agent  wire.Name      `json:"agent"`
	Lines  []string       `json:"lines"`
	Cursor map[string]int `json:"cursor"`
	Title  string         `json:"title"`
	State  string         `json:"state"`
	ANSI   string         `json:"ansi,omitempty"`
}

func screen(c *cli.Context) error {
	return perform(c, "", func(ctx context.Context, client *control.Client, name wire.Name) (fmt.Stringer, error) {
		seen, err := client.Screen(ctx, control.ScreenRequest{ANSI: c.Bool("ansi"), Last: c.Int("last")})
		shown := shownScreen{name, append([]string{}, seen.Lines...), map[string]int{"x": seen.CursorX, "y": seen.CursorY}, seen.Title, seen.State, ""}
		if c.Bool("ansi") {
			shown.ANSI = seen.ANSI
		}
		return shown, err
	})
}

// String ends where the last text does.
func (s shownScreen) String() string {
	if s.ANSI != "" {
		return strings.TrimRight(s.ANSI, "\n")
	}
	text := strings.Join(s.Lines, "\n")
	if command.Terminal() {
		text = letter.EscapeBody(text)
	}
	return strings.TrimRight(text, " \n")
}
