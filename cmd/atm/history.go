package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

var historyVerb = &cmdline.Verb{
	Name: "history", Args: "NAME", Summary: "an agent's turns: when, how long, prompt, response, status",
	Examples: []string{"atm history bob", "atm history bob --limit 1 --full"},
	Notes:    []string{"What no event has told is left out; the screen's recording has the rest: asciinema play .atm/main/NAME/run/screen.cast"},
	Flags: []cmdline.Flag{
		{Name: "limit", Aliases: []string{"n"}, Kind: cmdline.Int, Arg: "N", Default: "10", Usage: "the newest N; 0: all"},
		{Name: "full", Usage: "prompts and responses whole"},
	},
	MinArgs: 1, MaxArgs: 1,
	Guesses: []string{"turns"},
	Run:     run(historyOf),
}

func historyOf(ctx context.Context, e *env) error {
	b, err := e.agent()
	if err != nil {
		return err
	}
	b.TakeIn(ctx) // what was dropped may be events
	turns, err := e.team.History(b.Agent(), e.Int("limit"))
	if err != nil {
		return err
	}
	if e.JSON() {
		if turns == nil {
			turns = []teams.Turn{}
		}
		return e.PrintJSON(map[string]any{"agent": b.Agent(), "turns": turns})
	}
	if len(turns) == 0 {
		return e.print("no turn of %s is known", b.Agent())
	}
	for _, t := range turns {
		if err := e.print("%s", turnText(t, e.Bool("full"))); err != nil {
			return err
		}
	}
	return nil
}

// turnText is a turn for people: a line, and what was said indented below it.
func turnText(t teams.Turn, full bool) string {
	var parts []string
	switch {
	case t.Began != nil:
		parts = append(parts, stamp(*t.Began))
	case t.Ended != nil:
		parts = append(parts, "until "+stamp(*t.Ended))
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
		parts = append(parts, "mail "+shorts(t.Messages))
	}
	if full {
		parts = append(parts, letter.Escape(t.ID))
	}
	out := strings.Join(parts, "  ")
	for _, s := range []struct{ mark, text string }{{">", prompt(t, full)}, {"<", t.Response}} {
		if s.text == "" {
			continue
		}
		if !full {
			out += fmt.Sprintf("\n  %s %s", s.mark, letter.Clip(letter.Escape(strings.Join(strings.Fields(s.text), " ")), 160))
			continue
		}
		for _, line := range strings.Split(strings.TrimRight(s.text, "\n"), "\n") {
			out += fmt.Sprintf("\n  %s %s", s.mark, letter.Escape(line))
		}
	}
	return out
}

// prompt is what a turn was begun with. The line of ours above a message that
// was typed in says nothing that the turn's line does not.
func prompt(t teams.Turn, full bool) string {
	line, body, ok := strings.Cut(t.Prompt, "\n")
	if full || len(t.Messages) != 1 || !ok || !strings.HasPrefix(line, "[atm "+t.Messages[0].Short(6)) {
		return t.Prompt
	}
	return body
}
