package driver

import (
	"cmp"
	"encoding/json"
)

// front is the driver of package ptyrun/acp, which draws a screen for an agent that speaks the Agent Client Protocol.
// It draws the agent's words indented or after a mark.
var front = Driver{
	Name:          "acp",
	LogsOwnEvents: true,
	interrupt:     "\x03",
	indent:        2,
	box:           boxStyle{shape: unframed, glyph: FrontPrompt, text: 2, maxBelow: 1},
	rows: []rowPattern{
		{kind: busyRow, re: pattern(`^` + FrontBusy)},
		{kind: toolRow, re: pattern(`^\` + FrontTool)},
		{kind: noteRow, re: pattern(`^` + FrontNote)},
		{kind: answerRow, re: pattern(`^` + FrontSays)},
		{kind: userRow, re: pattern(`^` + FrontPrompt + ` `)},
	},
}

// Prefixes of the rows on the front's screen.
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
