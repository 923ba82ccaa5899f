package driver

import "encoding/json"

// front is the driver of package ptyrun/acp, which draws a screen for an agent that speaks the Agent Client Protocol.
// It draws the agent's words indented or after a mark.
var front = Driver{
	Name:          "acp",
	LogsOwnEvents: true,
	interrupt:     "\x03",
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

// readRequest returns the dialog of the front. It does not stand on the screen alone, where it may not fit, but also in
// l.Request, as JSON.
func (d *Driver) readRequest(l *Look) *Dialog {
	if l.Request == "" {
		return nil
	}
	q := &Dialog{cancel: escape}
	if json.Unmarshal([]byte(l.Request), q) != nil {
		return &Dialog{Kind: "unknown"}
	}
	for i := range q.Options {
		q.Options[i].Keys = FrontKeys[i : i+1]
	}
	q.Fingerprint = d.fingerprint(q)
	return q
}
