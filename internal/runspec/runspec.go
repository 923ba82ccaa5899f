// Package runspec is what atm and atm-runner say to each other. atm writes a Spec to the runner's stdin;
// the runner writes a Report to its stdout when the agent has ended. It is no part of package runner, which
// links the terminal emulator.
package runspec

import (
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// A Spec is what is to be run, and how.
type Spec struct {
	Root  string    `json:"root"`
	Team  wire.Name `json:"team"`
	Agent wire.Name `json:"agent"`

	LastStop string        `json:"last_stop"`          // the agent's last stop when this start was asked for
	Attended bool          `json:"attended,omitempty"` // the end of stdin ends the agent
	Policy   policy.Policy `json:"policy"`

	Run         string         `json:"run"`
	Command     []string       `json:"command"`
	Dir         string         `json:"dir"`
	Env         []string       `json:"env"`
	Driver      string         `json:"driver"`
	Inject      string         `json:"inject"`
	Restart     string         `json:"restart"`
	Cols        int            `json:"cols"`
	Rows        int            `json:"rows"`
	Prompt      string         `json:"prompt,omitempty"`
	RecordInput bool           `json:"record_input,omitempty"`
	ACP         map[string]any `json:"acp,omitempty"`     // what its session is begun with: acp.SessionNewParams
	Session     bool           `json:"session,omitempty"` // one is begun where none is alive
	Capture     string         `json:"capture"`
	Rules       session.Rules  `json:"rules"` // when sessions end
}

// A Report is how the program ended for good, or why it was not run.
type Report struct {
	Code  int            `json:"code"`           // the program's; with an error that one's
	Loop  bool           `json:"loop,omitempty"` // it ended again and again
	Tail  []string       `json:"tail,omitempty"` // its screen's last lines
	Error *command.Error `json:"error,omitempty"`
}
