package main

import (
	"fmt"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/config"
)

// tomlMistakes is the error of who needs a team.toml that has some: all are said.
func (e *env) tomlMistakes(wrong *config.Error) error {
	var lines []string
	for _, m := range wrong.Mistakes {
		lines = append(lines, fmt.Sprintf("line %d: %s", m.Line, letter.Escape(m.Text)))
	}
	if e.JSON() {
		return cmdline.Failed("%s: %s", wrong.Path, strings.Join(lines, "; ")).WithHint("atm doctor")
	}
	for _, line := range lines {
		e.Warn("team.toml, %s", line)
	}
	return cmdline.Failed("%s is not in order", wrong.Path).WithHint("atm doctor shows the same again")
}
