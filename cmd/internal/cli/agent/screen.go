package agent

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
)

var screenCommand = &cli.Command{
	Name: "screen", Category: "capture capture-pane screenshot snapshot output term\n--t    atm screen VALUE", ArgsUsage: "NAME", Usage: "print an agent's terminal as text",
	UsageText: `atm screen bob
atm screen bob --last 200`,
	Description: "--json: lines, cursor (from 0), title, state.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "ansi", Aliases: []string{"e"}, Usage: "keep the colours"},
		cmdline.CountFlag("last", 0, "the last `N` lines, including scrollback", "the screen alone", "n", "lines", "tail"),
	},
	Action: onRunner("", screen),
}

// screen prints the agent's terminal without the blank lines at its end.
func screen(ctx context.Context, c *cli.Context, k *call, client *control.Client) error {
	o := control.ScreenRequest{ANSI: c.Bool("ansi"), Last: c.Int("last")}
	seen, err := client.Screen(ctx, o)
	if err != nil {
		return err
	}
	text := strings.TrimRight(strings.Join(seen.Lines, "\n"), " \n")
	if k.p.IsTerminal() {
		text = letter.Reveal(text)
	}
	shown := map[string]any{
		"agent": k.name(), "lines": append([]string{}, seen.Lines...), "title": seen.Title, "state": seen.State,
		"cursor": map[string]int{"x": seen.CursorX, "y": seen.CursorY},
	}
	if o.ANSI {
		shown["ansi"] = seen.ANSI
		text = strings.TrimRight(seen.ANSI, "\n")
	}
	return k.p.PrintAs(shown, text)
}
