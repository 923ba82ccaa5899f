package acp

import "github.com/agentteammail/atm/mailbox"

// Options say which agent is run for whom.
type Options struct {
	Box     *mailbox.Box
	Run     string // the runner's run
	Command []string
	Dir     string         // the member's directory
	Version string         // of atm
	Session map[string]any // what a session is begun with: acp.SessionNewParams
}
