package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

// teamCheck names every mistake in team.toml: exit 1 if there is any.
func teamCheck(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	plan, err := e.team.Check()
	var wrong *teams.TomlError
	if err != nil && !errors.As(err, &wrong) {
		return err
	}
	if wrong == nil {
		if e.JSON() {
			return e.PrintJSON(map[string]any{"mistakes": []any{}})
		}
		return e.print("team.toml is in order: %d members, %d rules", len(plan.Members), len(plan.Rules))
	}
	if e.JSON() {
		type mistake struct {
			Line    int    `json:"line"`
			Message string `json:"message"`
			Nearest string `json:"nearest,omitempty"`
		}
		var list []mistake
		for _, m := range wrong.Mistakes {
			near, _ := nearest(m)
			list = append(list, mistake{m.Line, m.Text, near})
		}
		if err := e.PrintJSON(map[string]any{"path": wrong.Path, "mistakes": list}); err != nil {
			return err
		}
		return &cmdline.Error{Exit: cmdline.ExitFailed, Printed: true}
	}
	for _, line := range mistakeLines(wrong) {
		if err := e.print("%s", line); err != nil {
			return err
		}
	}
	return &cmdline.Error{Exit: cmdline.ExitFailed, Printed: true}
}

// tomlMistakes is the error of who needs a team.toml that has some: all are said.
func (e *env) tomlMistakes(wrong *teams.TomlError) error {
	lines := mistakeLines(wrong)
	if e.JSON() {
		return cmdline.Failed("%s: %s", wrong.Path, strings.Join(lines, "; ")).WithHint("atm team check")
	}
	for _, line := range lines {
		e.Warn("team.toml, %s", line)
	}
	return cmdline.Failed("%s is not in order", wrong.Path).WithHint("atm team check shows the same again")
}

// mistakeLines are the mistakes of a team.toml, a line each.
func mistakeLines(wrong *teams.TomlError) (lines []string) {
	for _, m := range wrong.Mistakes {
		line := fmt.Sprintf("line %d: %s", m.Line, letter.Escape(m.Text))
		if near, ok := nearest(m); ok {
			line += fmt.Sprintf("; did you mean %q?", near)
		}
		lines = append(lines, line)
	}
	return lines
}

func nearest(m teams.Mistake) (string, bool) {
	if m.Word == "" {
		return "", false
	}
	return cmdline.Nearest(m.Word, m.Known)
}
