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

// emptyFile is what output makes of a request to write an empty file: the SDK takes empty content for missing content.
const emptyFile = "_atm/empty_file"

// output passes the agent's output on to the SDK, without its updates. It handles these itself, in order with the other
// messages, because the SDK would turn the numbers of a tool's input and output into floats.
type output struct {
	*io.PipeWriter
	front    *front
	isBroken bool // a line was too long, or the SDK has given up
}

// ReadFrom reads the whole output. Package exec calls it.
func (o *output) ReadFrom(r io.Reader) (n int64, err error) {
	defer o.Close()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for err == nil && lines.Scan() {
		err = o.forward(lines.Bytes())
	}
	o.isBroken = err != nil || lines.Err() == bufio.ErrTooLong
	return 0, lines.Err()
}

func (o *output) forward(line []byte) error {
	var call struct {
		Method     string
		ID, Params json.RawMessage
	}
	json.Unmarshal(line, &call)
	if call.ID == nil && call.Method == acp.ClientMethodSessionUpdate {
		o.front.handleUpdate(call.Params)
		return nil
	}
	write := struct{ Content string }{"missing"}
	json.Unmarshal(call.Params, &write)
	if call.Method == acp.ClientMethodFsWriteTextFile && write.Content == "" {
		line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, call.ID, emptyFile, call.Params)
	}
	_, err := o.Write(append(line, '\n'))
	return err
}

// An update is what the agent says about the turn. In an update of a tool call everything but the ID may be missing.
type update struct {
	SessionUpdate       string
	Content             json.RawMessage // of a chunk a block, of a tool call a list
	Entries             []acp.PlanEntry
	ToolCallID          acp.ToolCallId
	Kind                acp.ToolKind
	Title               string
	Status              acp.ToolCallStatus
	RawInput, RawOutput json.RawMessage
}

// handleUpdate handles the parameters of session/update. It ignores invalid ones, and those before a session is open,
// which are replayed. One that does not become an event of ours, such as a plan or the usage, is logged as it came.
func (f *front) handleUpdate(params json.RawMessage) {
	var p struct {
		SessionID acp.SessionId
		Update    update
	}
	err := json.Unmarshal(params, &p)
	f.post(func() {
		u := &p.Update
		if p.SessionID != f.session {
			return
		}
		switch u.SessionUpdate {
		case "agent_message_chunk":
			var block acp.ContentBlock
			if json.Unmarshal(u.Content, &block) == nil {
				f.addText(textOf(block))
			}
		case "tool_call", "tool_call_update":
			if err == nil {
				f.updateCall(u)
			}
		case "agent_thought_chunk", "user_message_chunk": // a model has many thoughts
		default:
			call := slices.Concat([]byte(`{"jsonrpc":"2.0","method":"session/update","params":`), params, []byte("}"))
			if e, err := wire.Adopt(call); err == nil {
				f.log(e)
			}
		}
		if u.SessionUpdate == "plan" {
			f.endText()
			for _, e := range u.Entries {
				f.screen.print(note, fmt.Sprintf("plan: %s (%s)", e.Content, e.Status))
			}
		}
	})
}

// SessionUpdate is never called: see output.
func (f *front) SessionUpdate(context.Context, acp.SessionNotification) error { return nil }

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
