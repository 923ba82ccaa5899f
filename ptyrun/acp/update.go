//go:build linux || darwin

package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/wire"
)

const maxLine = 10 << 20 // bytes of a protocol message, as in the SDK

// emptyFile is what interceptUpdates makes of a request to write an empty file: the SDK takes empty content for
// missing content.
const emptyFile = "_atm/empty_file"

// interceptUpdates returns the agent's output without its updates. It handles these itself, in order with the other
// messages, because the SDK would turn the numbers of a tool's input and output into floats.
func (f *front) interceptUpdates(out io.Reader) io.Reader {
	in, to := io.Pipe()
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			var call struct {
				Method     string
				ID, Params json.RawMessage
			}
			line := lines.Bytes()
			json.Unmarshal(line, &call)
			if call.ID == nil && call.Method == acp.ClientMethodSessionUpdate {
				f.handleUpdate(call.Params)
				continue
			}
			write := struct{ Content string }{"missing"}
			json.Unmarshal(call.Params, &write)
			if call.Method == acp.ClientMethodFsWriteTextFile && write.Content == "" {
				line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, call.ID, emptyFile, call.Params)
			}
			to.Write(append(line, '\n'))
		}
		to.CloseWithError(lines.Err())
	}()
	return in
}

// handleUpdate handles the parameters of session/update. It ignores invalid ones.
func (f *front) handleUpdate(params json.RawMessage) {
	var p struct {
		SessionID acp.SessionId `json:"sessionId"`
		Update    struct {
			SessionUpdate       string
			RawInput, RawOutput json.RawMessage
		}
	}
	json.Unmarshal(params, &p)
	if !slices.Contains(knownUpdates, p.Update.SessionUpdate) {
		f.logUpdate(p.SessionID, params)
	}
	var n acp.SessionNotification
	if json.Unmarshal(params, &n) != nil {
		return
	}
	in, out := rawValue(p.Update.RawInput), rawValue(p.Update.RawOutput)
	if c := n.Update.ToolCall; c != nil {
		c.RawInput, c.RawOutput = in, out
	} else if c := n.Update.ToolCallUpdate; c != nil {
		c.RawInput, c.RawOutput = in, out
	}
	f.SessionUpdate(f.running, n)
}

// rawValue returns nil for a value that is absent or null.
func rawValue(v json.RawMessage) any {
	if v == nil || string(v) == "null" {
		return nil
	}
	return v
}

// knownUpdates are not logged as they came: they become events of ours, except the many thoughts of a model.
var knownUpdates = []string{"agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update"}

// logUpdate logs an update as it came, such as a plan or the usage.
func (f *front) logUpdate(session acp.SessionId, params json.RawMessage) {
	call := slices.Concat([]byte(`{"jsonrpc":"2.0","method":"session/update","params":`), params, []byte("}"))
	if e, err := wire.Adopt(call); err == nil {
		f.post(func() {
			if session == f.session {
				f.log(e)
			}
		})
	}
}

// SessionUpdate handles an update. It ignores updates before a session is open, which are replayed.
func (f *front) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	f.post(func() {
		if u := n.Update; n.SessionId != f.session {
			return
		} else if u.AgentMessageChunk != nil {
			f.addText(textOf(u.AgentMessageChunk.Content))
		} else if c := u.ToolCall; c != nil {
			f.updateCall(c.ToolCallId, c.Kind, c.Title, c.RawInput, c.Status, c.RawOutput, c.Content)
		} else if c := u.ToolCallUpdate; c != nil {
			f.updateCall(c.ToolCallId, value(c.Kind), value(c.Title), c.RawInput, value(c.Status), c.RawOutput, c.Content)
		} else if u.Plan != nil {
			f.endText()
			for _, e := range u.Plan.Entries {
				f.screen.print(note, fmt.Sprintf("plan: %s (%s)", e.Content, e.Status))
			}
		}
	})
	return nil
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
