//go:build linux || darwin

package acp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/wire"
)

const (
	update     = "_" + acp.ClientMethodSessionUpdate
	maxRead    = 10 << 20 // as the SDK has it
	maxUpdates = 512      // at once: of twice as many the SDK ends the connection
)

// exact is what an agent writes, with its updates renamed to a method of an extension. The SDK hands these over as
// they came; else it makes floats of the numbers that a tool is given and returns. An agent that is too quick waits.
func (f *front) exact(out io.Reader) io.Reader {
	in, to := io.Pipe()
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxRead)
		for lines.Scan() {
			line, isUpdate := renamed(lines.Bytes())
			if isUpdate {
				f.updates <- struct{}{}
			}
			to.Write(append(line, '\n'))
		}
		to.CloseWithError(lines.Err())
	}()
	return in
}

func renamed(line []byte) (_ []byte, isUpdate bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) == nil && string(m["method"]) == `"`+acp.ClientMethodSessionUpdate+`"` {
		m["method"] = json.RawMessage(`"` + update + `"`)
		line, _ = json.Marshal(m) // it was JSON
		return line, true
	}
	return line, false
}

// HandleExtensionMethod takes in an update that was renamed.
func (f *front) HandleExtensionMethod(ctx context.Context, method string, params json.RawMessage) (any, error) {
	if method != update {
		return nil, acp.NewMethodNotFound(method)
	}
	defer func() {
		select {
		case <-f.updates:
		default: // the agent knows the name
		}
	}()
	var as struct {
		SessionID acp.SessionId `json:"sessionId"`
		Update    struct {
			SessionUpdate       string
			RawInput, RawOutput json.RawMessage
		}
	}
	var n acp.SessionNotification
	err := json.Unmarshal(params, &as)
	if err == nil && !slices.Contains(told, as.Update.SessionUpdate) {
		f.keep(as.SessionID, params)
	}
	if err = cmp.Or(err, json.Unmarshal(params, &n)); err != nil {
		return nil, acp.NewInvalidParams(err.Error())
	}
	in, out := raw(as.Update.RawInput), raw(as.Update.RawOutput)
	if c := n.Update.ToolCall; c != nil {
		c.RawInput, c.RawOutput = in, out
	} else if c := n.Update.ToolCallUpdate; c != nil {
		c.RawInput, c.RawOutput = in, out
	}
	return nil, f.SessionUpdate(ctx, n)
}

// told are the updates that events of ours tell of, and a model's thoughts, of which there are very many.
var told = []string{"agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update"}

// keep keeps an update as it came: a plan, what it has cost, what nobody here knows.
func (f *front) keep(session acp.SessionId, params json.RawMessage) {
	call := slices.Concat([]byte(`{"jsonrpc":"2.0","method":"session/update","params":`), params, []byte("}"))
	if e, err := wire.Adopt(call); err == nil {
		f.post(func() {
			if session == f.session {
				f.say(e)
			}
		})
	}
}

// raw is a value as it came; nil: none did.
func raw(v json.RawMessage) any {
	if v == nil || string(v) == "null" {
		return nil
	}
	return v
}
