package acp

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// maxRaw is how many bytes of what the agent says of its own accord are in an event.
const maxRaw = 16 << 10

// update handles a session/update. One before a session is open is replayed. One that does not become an event of ours,
// such as a plan or the usage, is logged as it came.
func (a *Agent) update(params json.RawMessage, line []byte) {
	var p struct {
		SessionID acp.SessionId
		Update    json.RawMessage
	}
	if json.Unmarshal(params, &p) != nil || a.session == "" || p.SessionID != a.session {
		return
	}
	var kind struct{ SessionUpdate string }
	json.Unmarshal(p.Update, &kind)
	var chunk acp.SessionUpdateAgentMessageChunk
	var toolCall callUpdate
	switch kind.SessionUpdate {
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update", "plan":
		a.heard() // others may come at any time
	}
	switch kind.SessionUpdate {
	case "agent_message_chunk":
		if json.Unmarshal(p.Update, &chunk) == nil {
			a.addText(textOf(chunk.Content))
		}
	case "tool_call", "tool_call_update":
		if json.Unmarshal(p.Update, &toolCall) == nil {
			a.updateCall(toolCall)
		}
	case "agent_thought_chunk", "user_message_chunk": // a model has many thoughts
	default:
		if e, err := foreign.Adopt(line); err == nil && len(line) <= maxRaw {
			a.log(e)
		}
	}
}

func textOf(b acp.ContentBlock) string {
	switch {
	case b.Text != nil:
		return b.Text.Text
	case b.ResourceLink != nil:
		return b.ResourceLink.Uri
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		return b.Resource.Resource.TextResourceContents.Text
	}
	return "[no text]"
}

// callUpdate is a tool_call or an update of one. Input and output stay as they came: numbers do not go through a float.
type callUpdate struct {
	acp.ToolCallUpdate
	RawInput  json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
}

// toolCall is what the agent has said about a call so far.
type toolCall struct {
	kind               acp.ToolKind
	tool, alias, title string
	input              json.RawMessage
	isLarge            bool     // the input is, so that it is not kept
	paths              []string // of the files that it is about
	hasMorePaths       bool
	isStarted, isEnded bool
}

// maxCalls is how many calls of a turn are known.
const maxCalls = 1000

// updateCall handles an update of a tool call. It logs the call's start and end.
func (a *Agent) updateCall(u callUpdate) {
	c := a.mergeCall(u)
	if a.turn == nil {
		return
	}
	a.endText()
	if !c.isStarted {
		c.isStarted = true
		e := wire.Event{Kind: wire.ToolCallStart}.With("tool_call_id", wire.Clip(string(u.ToolCallId), maxRaw)).With("tool", c.tool)
		a.log(e.With("title", wire.Clip(c.title, maxRaw)).With("arguments", capped(c.input)).With("timestamp", time.Now().UTC()))
		a.setActivity(reducer.ToolRunning, c.tool)
	}
	hasFailed := value(u.Status) == acp.ToolCallStatusFailed
	if c.isEnded || value(u.Status) != acp.ToolCallStatusCompleted && !hasFailed {
		return
	}
	c.isEnded, c.input = true, nil
	for _, part := range u.Content {
		if isNull(u.RawOutput) && part.Content != nil {
			u.RawOutput = wire.Quote(wire.Clip(textOf(part.Content.Content), maxRaw/2))
		}
	}
	e := wire.Event{Kind: wire.ToolCallEnd}.With("tool_call_id", wire.Clip(string(u.ToolCallId), maxRaw)).With("tool", c.tool).With("result", capped(u.RawOutput))
	if hasFailed {
		e = e.With(wire.FieldError, u.Status)
	}
	a.log(e)
	a.setActivity(reducer.Thinking, "")
	if hasFailed || c.kind == "" || a.Edited == nil {
		return
	}
	for _, path := range c.files() {
		if filepath.IsAbs(path) {
			a.Edited(path)
		}
	}
}

// files are those that the call changes, or may change if it does not say what it does.
func (c *toolCall) files() []string {
	switch c.kind {
	case acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove, "":
		return c.paths
	}
	return nil
}

// maxCallPaths is how many files of a call are known.
const maxCallPaths = 50

// mergeCall adds to what is known about a call. The call's kind names its tool, the first word of its title is an
// alias.
func (a *Agent) mergeCall(u callUpdate) *toolCall {
	c := a.tools[u.ToolCallId]
	if c == nil {
		if len(a.tools) >= maxCalls {
			clear(a.tools)
		}
		c = &toolCall{}
		a.tools[u.ToolCallId] = c
	}
	if kind := value(u.Kind); kind != acp.ToolKindOther {
		c.kind = cmp.Or(kind, c.kind)
	}
	c.title = cmp.Or(wire.Clip(value(u.Title), maxQuestion), c.title)
	if !isNull(u.RawInput) {
		if c.input, c.isLarge = u.RawInput, len(u.RawInput) > maxQuestion; c.isLarge {
			c.input = nil
		}
	}
	var paths []string
	for _, l := range u.Locations {
		paths = append(paths, l.Path)
	}
	for _, part := range u.Content {
		if part.Diff != nil {
			paths = append(paths, part.Diff.Path)
		}
	}
	for _, path := range paths {
		if isKnown := slices.Contains(c.paths, path); !isKnown && len(c.paths) < maxCallPaths {
			c.paths = append(c.paths, path)
		} else if !isKnown {
			c.hasMorePaths = true
		}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(c.title), " ")
	c.tool, c.alias = string(c.kind), strings.TrimRight(first, ":")
	if c.tool == "" {
		c.tool, c.alias = c.alias, ""
	}
	return c
}

// capped returns a value, or nil if it is too large for an event, or if JSON of ours does not allow it.
func capped(raw json.RawMessage) json.RawMessage {
	if _, err := wire.Marshal(raw); err != nil || len(raw) > maxRaw {
		return nil
	}
	return raw
}
