package acp

import (
	"encoding/json"

	"github.com/agentteammail/atm/mailbox"
)

// Options say which agent is run for whom.
type Options struct {
	Box     *mailbox.Box
	Run     string // the runner's run
	Command []string
	Dir     string // the member's directory
	Version string // of atm
	Session Preferences
}

// Preferences are what a session is begun with, in the words of the older wire (acp.SessionNewParams).
// Metadata, the workspace and what a model is to be asked with go out as _meta, the model by the agent's own
// option for it.
type Preferences struct {
	Metadata  map[string]any  `json:"metadata,omitempty"`
	Workspace json.RawMessage `json:"workspace,omitempty"`
	Model     struct {
		ID          string   `json:"model_id,omitempty"`
		Temperature *float64 `json:"temperature,omitempty"`
		MaxTokens   *uint32  `json:"max_tokens,omitempty"`
	} `json:"model_preferences,omitzero"`
}

// meta is what of them goes out with session/new.
func (p Preferences) meta() map[string]any {
	meta := map[string]any{}
	for k, v := range p.Metadata {
		meta[k] = v
	}
	if p.Workspace != nil {
		meta["workspace"] = p.Workspace
	}
	if p.Model.ID != "" || p.Model.Temperature != nil || p.Model.MaxTokens != nil {
		meta["model_preferences"] = p.Model
	}
	if len(meta) == 0 {
		return nil
	}
	return meta
}
