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
	Ways: []agents.Way{{ // under atm run as well
		By: agents.ByPlugin, At: []string{agents.AtIdle, agents.AtBusy, agents.AtEnd, agents.AtQuestion}, Needs: "its screen: not run, serve or acp",
		Receipt: "an answer of the model that begins behind it", Proven: []string{"1.18"}, Test: "TestPushOpencode",
	}},
	Edits: map[string]string{"edit": "filePath", "write": "filePath", "apply_patch": "patchText", "patch": "patchText"},
}
