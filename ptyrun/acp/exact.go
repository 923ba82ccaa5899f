//go:build linux || darwin

package acp

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/wire"
)

const maxRead = 10 << 20 // as the SDK has it

// exact is what an agent writes, without its updates: these are taken in here, as they came and before what follows
// them. The SDK would make floats of the numbers that a tool is given and returns.
func (f *front) exact(out io.Reader) io.Reader {
	in, to := io.Pipe()
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxRead)
		for lines.Scan() {
			var call struct {
				Method     string
				ID, Params json.RawMessage
			}
			if json.Unmarshal(lines.Bytes(), &call) == nil && call.ID == nil && call.Method == acp.ClientMethodSessionUpdate {
				f.update(call.Params)
			} else {
				to.Write(append(lines.Bytes(), '\n'))
			}
		}
		to.CloseWithError(lines.Err())
	}()
	return in
}

// update takes in an update; one that is none is passed over.
func (f *front) update(params json.RawMessage) {
	var as struct {
		SessionID acp.SessionId `json:"sessionId"`
		Update    struct {
			SessionUpdate       string
			RawInput, RawOutput json.RawMessage
		}
	}
	err := json.Unmarshal(params, &as)
	if err == nil && !slices.Contains(told, as.Update.SessionUpdate) {
		f.keep(as.SessionID, params)
	}
	var n acp.SessionNotification
	if err != nil || json.Unmarshal(params, &n) != nil {
		return
	}
	in, out := raw(as.Update.RawInput), raw(as.Update.RawOutput)
	if c := n.Update.ToolCall; c != nil {
		c.RawInput, c.RawOutput = in, out
	} else if c := n.Update.ToolCallUpdate; c != nil {
		c.RawInput, c.RawOutput = in, out
	}
	f.SessionUpdate(f.running, n)
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
