package driver

import (
	"cmp"
	"encoding/json"
)

// Prefixes of the rows on the screen of package ptyrun/acp, the front of an agent that speaks the Agent Client Protocol.
// They stand in agents/acp.toml, too.
const (
	FrontPrompt = "›"
	FrontSays   = "● "
	FrontTool   = "* "
	FrontNote   = "- "
	FrontBusy   = "… working"
)

// FrontKeys are the keys of the options, in order.
const FrontKeys = "123456789abcdefghijk"

// readRequest returns the dialog of the front. It is on the screen for people, where it may not fit, and whole in
// l.Request.
func (d *Driver) readRequest(l *Look) *Dialog {
	if l.Request == "" {
		return nil
	}
	q := &Dialog{}
	if json.Unmarshal([]byte(l.Request), q) != nil {
		q = &Dialog{}
	}
	q.Kind, q.cancel = cmp.Or(q.Kind, "unknown"), escape
	for i := range min(len(q.Options), len(FrontKeys)) {
		q.Options[i].Keys = FrontKeys[i : i+1]
	}
	q.Fingerprint = d.fingerprint(q)
	return q
}
