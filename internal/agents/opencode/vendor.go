// Package opencode is all that is OpenCode's: what its plugin says and is answered, and what is installed.
package opencode

import (
	"github.com/agentteammail/atm/internal/agents"
)

// Vendor is OpenCode.
var Vendor = &agents.Vendor{
	Name:          "opencode",
	Marks:         []string{"OPENCODE"},
	Configuration: configuration,
	Parsers:       map[string]func(*agents.Call){"opencode": parse},
	Answer:        func(c *agents.Call, text string) any { return answer(c, text) },
	Decide:        func(c *agents.Call, v agents.Verdict) any { return decide(c, v) },
	Edits:         map[string]string{"edit": "filePath", "write": "filePath", "apply_patch": "patchText", "patch": "patchText"},
}
