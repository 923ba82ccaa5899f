// Package claude is all that is Claude Code's: what its hooks say and are answered, what is installed, and how one that its
// person started is reached.
package claude

import "github.com/agentteammail/atm/internal/agents"

// Vendor is Claude Code. "claude-status" is for the command of its status line.
var Vendor = &agents.Vendor{
	Name:          "claude",
	Marks:         []string{"CLAUDECODE"},
	Configuration: configuration,
	Parsers:       map[string]func(*agents.Call){"claude": parse, "claude-status": parseStatus},
	Answer:        answer,
	Decide:        Decide,
	ProjectDir:    "CLAUDE_PROJECT_DIR", // it runs a hook where the agent has gone with cd
	Entry:         entry,
	EnvFile:       "CLAUDE_ENV_FILE",
	Activity:      activity,
	Ways: []agents.Way{{
		By: inboxSocket, At: []string{agents.AtIdle, agents.AtBusy, agents.AtEnd},
		Needs:   "2.1.224 or newer; in bypass mode it must accept messages: atm install claude --accept",
		Receipt: "UserPromptSubmit with the text", Proven: []string{"2.1.332"}, Test: "TestPushClaude",
	}, {
		By: agents.ByHook, At: []string{agents.AtBusy, agents.AtEnd, agents.AtQuestion},
		Receipt: "the transcript that has it", Proven: []string{"2.1.197", "2.1.332"}, Test: "TestPushClaude",
	}, agents.InPane},
	Session: session,
	IsScript: func(getenv func(string) string, _ func() []string) bool {
		return getenv(entry) != "" && getenv(entry) != "cli"
	},
	Edits: map[string]string{"Edit": "file_path", "Write": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"},
}

const (
	entry       = "CLAUDE_CODE_ENTRYPOINT"
	inboxSocket = "inbox socket" // it listens for messages of other sessions
)
