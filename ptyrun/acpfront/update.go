//go:build linux || darwin

package acpfront

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// output passes the agent's output on to the SDK, without its notifications: the SDK would end the connection when many
// come at once, and would not keep updates in order with the agent's requests.
type output struct {
	*io.PipeWriter
	front *front
}

// ReadFrom reads the whole output. Package exec calls it.
func (o output) ReadFrom(r io.Reader) (n int64, err error) {
	defer o.Close()
	for lines := bufio.NewReader(r); err == nil; {
		var line []byte
		var size int64
		if line, size, err = wire.ReadLine(lines, maxUpdate); size > maxUpdate {
			return 0, o.CloseWithError(fmt.Errorf("it wrote a message of over %d MiB", maxUpdate>>20))
		}
		line = bytes.ToValidUTF8(line, []byte("\ufffd"))
		if !o.front.handleNotification(line) {
			_, writeErr := o.Write(line)
			err = cmp.Or(writeErr, err)
		}
	}
	return 0, nil
}

const maxUpdate = 64 << 20 // bytes of one message of the agent's

const maxRaw = 16 << 10 // bytes of what the agent says of its own accord, in an event

// handleNotification handles a line if it is a notification, except the one for the SDK. Only a session/update counts,
// and not before a session is open: then it is replayed. One that does not become an event of ours, such as a plan or
// the usage, is logged as it came.
func (f *front) handleNotification(line []byte) (isNotification bool) {
	var call struct {
		Method string
		ID     json.RawMessage
		Params struct {
			SessionID acp.SessionId
			Update    json.RawMessage
		}
	}
	err := json.Unmarshal(line, &call)
	if err != nil || call.ID != nil || call.Method == "" || call.Method == "$/cancel_request" {
		return false
	}
	var kind struct{ SessionUpdate string }
	json.Unmarshal(call.Params.Update, &kind)
	f.do(func() {
		if call.Method != acp.ClientMethodSessionUpdate || f.session == "" || call.Params.SessionID != f.session {
			return
		}
		var chunk acp.SessionUpdateAgentMessageChunk
		var toolCall callUpdate
		switch kind.SessionUpdate {
		case "agent_message_chunk":
			if json.Unmarshal(call.Params.Update, &chunk) == nil {
				f.addText(textOf(chunk.Content))
			}
		case "tool_call", "tool_call_update":
			if json.Unmarshal(call.Params.Update, &toolCall) == nil {
				f.updateCall(toolCall)
			}
		case "agent_thought_chunk", "user_message_chunk": // a model has many thoughts
		default:
			if e, err := wire.Adopt(line); err == nil && len(line) <= maxRaw {
				f.log(e)
			}
		}
	})
	return true
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

func isNull(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }

// toolCall is what the agent has said about a call so far.
type toolCall struct {
	kind               acp.ToolKind
	tool, alias, title string
	input              json.RawMessage
	isStarted, isEnded bool
}

// updateCall handles an update of a tool call. It logs the call's start and end.
func (f *front) updateCall(u callUpdate) {
	c := f.mergeCall(u)
	if f.turn == nil {
		return
	}
	f.endText()
	if !c.isStarted {
		c.isStarted = true
		f.screen.print(tool, c.tool+": "+c.title)
		record := map[string]any{"id": u.ToolCallId, "name": c.tool, "arguments": capped(c.input), "timestamp": time.Now().UTC()}
		f.log(wire.Event{Kind: "tool_call_start"}.With("tool_call", record).With("title", c.title))
		f.setActivity(reducer.ToolRunning, c.tool)
	}
	hasFailed := value(u.Status) == acp.ToolCallStatusFailed
	if c.isEnded || value(u.Status) != acp.ToolCallStatusCompleted && !hasFailed {
		return
	}
	c.isEnded = true
	for _, part := range u.Content {
		if isNull(u.RawOutput) && part.Content != nil {
			u.RawOutput = wire.Quote(wire.Clip(textOf(part.Content.Content), maxRaw/2))
		}
	}
	e := wire.Event{Kind: "tool_call_end"}.With("tool_call_id", u.ToolCallId).With("tool", c.tool).With("result", capped(u.RawOutput))
	if hasFailed {
		e = e.With("error", u.Status)
		f.screen.print(tool, "failed: "+c.title)
	}
	f.log(e)
	f.setActivity(reducer.Thinking, "")
}

// mergeCall adds to what is known about a call. The call's kind names its tool, the first word of its title is an
// alias.
func (f *front) mergeCall(u callUpdate) *toolCall {
	c := f.tools[u.ToolCallId]
	if c == nil {
		c = &toolCall{}
		f.tools[u.ToolCallId] = c
	}
	if kind := value(u.Kind); kind != acp.ToolKindOther {
		c.kind = cmp.Or(kind, c.kind)
	}
	c.title = cmp.Or(wire.Clip(value(u.Title), maxRaw), c.title)
	if !isNull(u.RawInput) {
		c.input = u.RawInput
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
