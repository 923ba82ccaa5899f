// Package codex is all that is Codex's: what its hooks say and are answered, what is installed, and which server its threads
// share. Package appserver below it speaks with that.
package codex

import (
	"slices"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/claude"
)

// Vendor is Codex.
var Vendor = &agents.Vendor{
	Name:          name,
	Marks:         []string{"CODEX_SANDBOX", "CODEX_THREAD_ID"},
	Configuration: configuration,
	Parsers:       map[string]func(*agents.Call){"codex": parse},
	Answer:        func(c *agents.Call, text string) any { return c.Document(text) },
	Decide:        claude.Decide,
	Ways: []agents.Way{{
		By: "server queue", At: []string{agents.AtIdle, agents.AtBusy, agents.AtEnd, agents.AtQuestion}, // what its next turn begins with
		Needs:   "its server, which codex -c, --search and --no-daemon have not, nor what atm runs",
		Receipt: "UserPromptSubmit with the message", Proven: []string{"0.169", "0.171"}, Test: "TestPushCodex",
	}, {
		By: agents.ByHook, At: []string{agents.AtBusy, agents.AtEnd},
		Receipt: "the next call of a hook", Proven: []string{"0.169", "0.171"}, Test: "TestHooks",
	}},
	Session: session,
	Server: &agents.Server{
		Unshared: []string{name, "--no-daemon"}, Thread: "CODEX_THREAD_ID", Typed: "!", IsOne: isServer, Socket: socket, Shows: shows, Threads: threads,
	},
	IsScript: func(_ func(string) string, arguments func() []string) bool {
		return slices.ContainsFunc(arguments(), func(word string) bool { return slices.Contains([]string{"exec", "e", "review"}, word) })
	},
	Edits: map[string]string{"apply_patch": "command"},
}
