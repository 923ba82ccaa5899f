//go:build linux || darwin

package acp

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// toolCall is what the agent has said about a call so far.
type toolCall struct {
	kind               acp.ToolKind
	tool, alias, title string
	input              json.RawMessage
	isStarted, isEnded bool
}

const maxRaw = 16 << 10 // bytes of a tool's input, and of its output, in an event

// updateCall handles an update of a tool call. It logs the call's start and end.
func (f *front) updateCall(u *update) {
	c := f.mergeCall(u.ToolCallID, u.Kind, u.Title, u.RawInput)
	if f.turn == nil {
		return
	}
	f.endText()
	if !c.isStarted {
		c.isStarted = true
		f.screen.print(tool, c.tool+": "+c.title)
		record := map[string]any{"id": u.ToolCallID, "name": c.tool, "arguments": capped(c.input), "timestamp": time.Now().UTC()}
		f.log(wire.Event{Kind: "tool_call_start"}.With("tool_call", record).With("title", c.title))
		f.setActivity(reducer.ToolRunning, c.tool)
	}
	hasFailed := u.Status == acp.ToolCallStatusFailed
	if c.isEnded || u.Status != acp.ToolCallStatusCompleted && !hasFailed {
		return
	}
	c.isEnded = true
	output := u.RawOutput
	var content []acp.ToolCallContent
	json.Unmarshal(u.Content, &content)
	for _, one := range content {
		if isNull(output) && one.Content != nil {
			output = wire.Quote(wire.Clip(textOf(one.Content.Content), maxRaw/2))
		}
	}
	e := wire.Event{Kind: "tool_call_end"}.With("tool_call_id", u.ToolCallID).With("tool", c.tool).With("result", capped(output))
	if hasFailed {
		e = e.With("error", u.Status)
		f.screen.print(tool, "failed: "+c.title)
	}
	f.log(e)
	f.setActivity(reducer.Thinking, "")
}

// mergeCall adds to what is known about a call. The call's kind names its tool, the first word of its title is an
// alias.
func (f *front) mergeCall(id acp.ToolCallId, kind acp.ToolKind, title string, input json.RawMessage) *toolCall {
	c := f.tools[id]
	if c == nil {
		c = &toolCall{}
		f.tools[id] = c
	}
	if kind != "" && kind != acp.ToolKindOther {
		c.kind = kind
	}
	if title != "" {
		c.title = title
	}
	if !isNull(input) {
		c.input = input
	}
	first, _, _ := strings.Cut(strings.TrimSpace(c.title), " ")
	c.tool, c.alias = string(c.kind), strings.TrimRight(first, ":")
	if c.tool == "" {
		c.tool, c.alias = c.alias, ""
	}
	return c
}

func isNull(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }

// capped returns a value, or nil if it is too large for an event.
func capped(raw json.RawMessage) any {
	if isNull(raw) || len(raw) > maxRaw {
		return nil
	}
	return raw
}
