package acpfront

import (
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams/policy"
)

// Options say which agent to run, for which member.
type Options struct {
	Box     *mailbox.Box
	Run     string // the ID of the runner's run
	Command []string
	Dir     string         // the member's directory
	Root    string         // the directory that holds the teams: no file in it is written for the agent
	Rules   policy.Rules   // for what the agent does through its client without having asked
	Version string         // of atm
	Session map[string]any // parameters of a new session: metadata, workspace, model_preferences
}
