package agent

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox/letter"
)

var screenCommand = &cli.Command{
	Name: "screen", Aliases: []string{"capture", "peek"}, ArgsUsage: "NAME", Usage: "what an agent's terminal shows, as text",
	UsageText:   "atm screen bob\natm screen bob --last 200",
	Description: "--json: lines, cols, rows, cursor (from 0), title, state, detail, alt (the alternate screen).",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "ansi", Usage: "with colours, as the agent wrote them"},
		&cli.IntFlag{Name: "last", Aliases: []string{"limit", "n"}, Usage: "the last `N` lines, also of what scrolled away"},
	},
	Action: screen,
}

// shownScreen is what screen prints.
type shownScreen struct {
	Agent  string   `json:"agent"`
	Lines  []string `json:"lines"`
	ANSI   string   `json:"ansi,omitempty"`
	Cols   int      `json:"cols"`
	Rows   int      `json:"rows"`
	Cursor struct {
		X int `json:"x"`
		Y int `json:"y"`
	} `json:"cursor"`
	Title  string `json:"title"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
	Alt    bool   `json:"alt"`
}

func screen(c *cli.Context) error {
	if err := command.NotBoth(c, "ansi", "last"); err != nil {
		return err
	}
	last := c.Int("last")
	if c.IsSet("last") && last == 0 {
		return command.Usage("--last is at least one line").WithHint("atm screen %s --last 200", c.Args().First())
	}
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	client, err := connect(c.Context, c, s, box)
	if err != nil {
		return err
	}
	defer client.Close()
	seen, err := client.Screen(c.Context, control.ScreenRequest{ANSI: c.Bool("ansi"), Last: last})
	if err != nil {
		return runnerError(s, box, err)
	}
	shown := shownScreen{
		Agent: string(box.Agent()), Lines: seen.Lines, Cols: seen.Cols, Rows: seen.Rows,
		Title: seen.Title, State: seen.State, Detail: seen.Detail, Alt: seen.Alt,
	}
	if c.Bool("ansi") {
		shown.ANSI = seen.ANSI
	}
	if shown.Lines == nil {
		shown.Lines = []string{}
	}
	shown.Cursor.X, shown.Cursor.Y = seen.CursorX, seen.CursorY
	return command.Print(c, &shown)
}

// String ends where the last text does.
func (s *shownScreen) String() string {
	if s.ANSI != "" {
		return strings.TrimRight(s.ANSI, "\n")
	}
	text := strings.Join(s.Lines, "\n")
	if command.Terminal() {
		text = letter.EscapeBody(text)
	}
	return strings.TrimRight(text, " \n")
}
