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
	input              any
	isStarted, isEnded bool
}

const maxRaw = 16 << 10 // bytes of a tool's input, and of its output, in an event

// updateCall handles an update of a tool call. It logs the call's start and end.
func (f *front) updateCall(u *update) {
	c := f.mergeCall(u.ToolCallID, u.Kind, u.Title, rawValue(u.RawInput))
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
	output := rawValue(u.RawOutput)
	var content []acp.ToolCallContent
	json.Unmarshal(u.Content, &content)
	for _, one := range content {
		if output == nil && one.Content != nil {
			output = wire.Clip(textOf(one.Content.Content), maxRaw/2)
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
func (f *front) mergeCall(id acp.ToolCallId, kind acp.ToolKind, title string, input any) *toolCall {
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
	if input != nil {
		c.input = input
	}
	first, _, _ := strings.Cut(strings.TrimSpace(c.title), " ")
	c.tool, c.alias = string(c.kind), strings.TrimRight(first, ":")
	if c.tool == "" {
		c.tool, c.alias = c.alias, ""
	}
	return c
}

// rawValue returns nil for a value that is absent or null.
func rawValue(v json.RawMessage) any {
	if v == nil || string(v) == "null" {
		return nil
	}
	return v
}

// capped returns v, or nil if it is too large for an event.
func capped(v any) any {
	if data, _ := json.Marshal(v); len(data) > maxRaw {
		return nil
	}
	return v
}
