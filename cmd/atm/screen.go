package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
)

var screenVerb = &cmdline.Verb{
	Name: "screen", Args: "NAME [--last N]", Summary: "what an agent's terminal shows, as text",
	Examples: []string{"atm screen bob", "atm screen bob --last 200"},
	Notes: []string{
		"Lines end where their text ends, and the screen where its last line does.",
		"--json: lines, cols, rows, cursor (from 0), title, state, detail, alt (the alternate screen).",
	},
	Flags: []cmdline.Flag{
		{Name: "ansi", Usage: "with colours, as the agent wrote them"},
		// No value of its own: read --last has none, and a flag takes one in
		// every verb or in none.
		{Name: "last", Usage: "N lines, with what scrolled away"},
	},
	Guesses: []string{"peek", "view", "capture"},
	MinArgs: 1, MaxArgs: 2,
	Run: run(showScreen),
}

// lastLines is more than any runner keeps.
const lastLines = 100_000

// shownScreen is the JSON of screen.
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

// lastN takes the number of --last out of the arguments, where it stands before
// or behind the name; 0 without --last.
func (e *env) lastN() (int, error) {
	if !e.Bool("last") {
		if len(e.Args) > 1 {
			return 0, cmdline.Usage("one agent at a time, not %q as well", e.Args[1]).WithHint("atm screen %s", cmdline.Escape(e.Args[0]))
		}
		return 0, nil
	}
	for _, i := range []int{1, 0} {
		if len(e.Args) < 2 {
			break
		}
		n, err := strconv.Atoi(e.Args[i])
		if err != nil {
			continue
		}
		if n < 1 {
			break
		}
		e.Args = []string{e.Args[1-i]}
		return min(n, lastLines), nil
	}
	return 0, cmdline.Usage("--last needs how many lines").WithHint("atm screen %s --last 200", cmdline.Escape(e.Args[0]))
}

func showScreen(ctx context.Context, e *env) error {
	if err := e.NotBoth("ansi", "last"); err != nil {
		return err
	}
	last, err := e.lastN()
	if err != nil {
		return err
	}
	b, err := e.agent()
	if err != nil {
		return err
	}
	c, err := e.reach(ctx, b)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Screen(ctx, control.ScreenRequest{ANSI: e.Bool("ansi"), Last: last})
	if err != nil {
		return e.explainRunner(b, err)
	}
	switch {
	case e.JSON():
		out := shownScreen{
			Agent: string(b.Agent()), Lines: s.Lines, ANSI: s.ANSI, Cols: s.Cols, Rows: s.Rows,
			Title: s.Title, State: s.State, Detail: s.Detail, Alt: s.Alt,
		}
		if out.Lines == nil {
			out.Lines = []string{}
		}
		out.Cursor.X, out.Cursor.Y = s.CursorX, s.CursorY
		return e.PrintJSON(out)
	case e.Bool("ansi"):
		return e.print("%s", strings.TrimRight(s.ANSI, "\n"))
	}
	lines := s.Lines
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return nil
	}
	if e.terminal() {
		for i := range lines {
			lines[i] = mailbox.Escape(lines[i])
		}
	}
	return e.print("%s", strings.Join(lines, "\n"))
}
