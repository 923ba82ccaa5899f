package agent

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox/letter"
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
	Agent  wire.Name `json:"agent"`
	Lines  []string  `json:"lines"`
	Cursor position  `json:"cursor"`
	Title  string    `json:"title"`
	State  string    `json:"state"`
	ANSI   string    `json:"ansi,omitempty"`
}

type position struct {
	X int `json:"x"`
	Y int `json:"y"`
}

func screen(c *cli.Context) error {
	if err := command.NotBoth(c, "ansi", "last"); err != nil {
		return err
	}
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	client, err := connect(c.Context, s, box)
	if err != nil {
		return err
	}
	defer client.Close()
	seen, err := client.Screen(c.Context, control.ScreenRequest{ANSI: c.Bool("ansi"), Last: c.Int("last")})
	if err != nil {
		return runnerError(s, box, err)
	}
	shown := shownScreen{
		Agent: box.Agent(), Lines: append([]string{}, seen.Lines...), Cursor: position{seen.CursorX, seen.CursorY},
		Title: seen.Title, State: seen.State,
	}
	if c.Bool("ansi") {
		shown.ANSI = seen.ANSI
	}
	return command.Print(c, shown)
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
