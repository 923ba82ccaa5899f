package main

import (
	"context"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox/letter"
)

var screenVerb = &cmdline.Verb{
	Name: "screen", Args: "NAME", Summary: "what an agent's terminal shows, as text",
	Examples: []string{"atm screen bob", "atm screen bob --last 200"},
	Notes: []string{
		"Lines end where their text ends, and the screen where its last line does.",
		"--json: lines, cols, rows, cursor (from 0), title, state, detail, alt (the alternate screen).",
	},
	Flags: []cmdline.Flag{
		{Name: "ansi", Usage: "with colours, as the agent wrote them"},
		{Name: "last", Kind: cmdline.Int, Arg: "N", Usage: "so many lines, with what scrolled away"},
	},
	Guesses: []string{"peek", "view", "capture"},
	MinArgs: 1, MaxArgs: 1,
	Run: run(showScreen),
}

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

func showScreen(ctx context.Context, e *env) error {
	if err := e.NotBoth("ansi", "last"); err != nil {
		return err
	}
	last := e.Int("last")
	if e.Given("last") && last == 0 {
		return cmdline.Usage("--last is at least one line").WithHint("atm screen %s --last 200", cmdline.Escape(e.Args[0]))
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
			lines[i] = letter.Escape(lines[i])
		}
	}
	return e.print("%s", strings.Join(lines, "\n"))
}
