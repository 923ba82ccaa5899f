// Package gemini is all that is Gemini CLI's: what its hooks say and are answered, and what is installed.
package gemini

import (
	"slices"

	"github.com/agentteammail/atm/internal/agents"
)

// Vendor is Gemini CLI.
var Vendor = &agents.Vendor{
	Name:          "gemini",
	Marks:         []string{"GEMINI_CLI"},
	Configuration: configuration,
	Parsers:       map[string]func(*agents.Call){"gemini": parse},
	Answer:        answer,
	ProjectDir:    "GEMINI_PROJECT_DIR",
	Ways: []agents.Way{{
		By: agents.ByHook, At: []string{agents.AtBusy, agents.AtEnd}, Receipt: "the next call of a hook", Proven: []string{"0.61"}, Test: "TestByHand",
	}, agents.InPane},
	IsScript: func(_ func(string) string, arguments func() []string) bool {
		return slices.ContainsFunc(arguments(), func(word string) bool { return word == "-p" || word == "--prompt" })
	},
	Edits: map[string]string{"replace": "file_path", "write_file": "file_path"},
}
