package acp

import "github.com/agentteammail/atm/mailbox"

// Options say which agent to run, for which member.
type Options struct {
	Box     *mailbox.Box
	Run     string // the ID of the runner's run
	Command []string
	Dir     string         // the member's directory
	Version string         // of atm
	Session map[string]any // parameters of a new session: metadata, workspace, model_preferences
}
