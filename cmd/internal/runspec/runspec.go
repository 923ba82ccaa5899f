// Package runspec is the protocol between atm and atm-runner. atm writes a Spec to the runner's stdin; the runner
// writes a Report to its stdout when the agent has ended. It is not part of package runner, which links the terminal
// emulator.
package runspec

import (
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// A Spec says what to run, and how.
type Spec struct {
	Root  string    `json:"root"`
	Team  wire.Name `json:"team"`
	Agent wire.Name `json:"agent"`

	LastStop string        `json:"last_stop"`          // the agent's last stop when atm asked for this start
	Attended bool          `json:"attended,omitempty"` // stop the agent at the end of stdin, unless true comes first: it was detached
	Policy   policy.Policy `json:"policy"`
	On       []config.On   `json:"on,omitempty"` // commands for what happens to the agent

	Run     string         `json:"run"`
	Command []string       `json:"command"`
	Dir     string         `json:"dir"`
	Env     []string       `json:"env"`
	Driver  string         `json:"driver"`
	Inject  string         `json:"inject"`
	Restart string         `json:"restart"`
	Cols    int            `json:"cols"`
	Rows    int            `json:"rows"`
	Prompt  string         `json:"prompt,omitempty"`
	Resume  bool           `json:"resume,omitempty"`
	Fork    string         `json:"fork,omitempty"`    // the conversation from a copy of which it goes on
	Anew    bool           `json:"anew,omitempty"`    // --resume=false
	GoesOn  bool           `json:"goes_on,omitempty"` // after a usage limit
	Serves  []wire.Name    `json:"serves,omitempty"`  // shared inboxes from which it takes work
	Lease   time.Duration  `json:"lease,omitempty"`   // for so long
	Session bool           `json:"session,omitempty"` // begin one if none is alive
	Capture string         `json:"capture"`
	Rules   session.Rules  `json:"rules"` // when sessions end
	Brought agents.Brought `json:"brought,omitzero"`
}

// A Report says how the program exited for good, or why it was not run.
type Report struct {
	Code  int            `json:"code"`           // the program's exit code, or the error's
	Loop  bool           `json:"loop,omitempty"` // it exited too often
	Tail  []string       `json:"tail,omitempty"` // the last lines of its screen
	Error *failure.Error `json:"error,omitempty"`
	Hint  string         `json:"hint,omitempty"` // of the error, as a failure.Hint: its JSON does not mark commands
}
