//go:build linux || darwin

package acp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"

	"github.com/coder/acp-go-sdk"
)

const (
	update  = "_" + acp.ClientMethodSessionUpdate
	maxLine = 10 << 20 // as the SDK has it
)

// exact is what an agent writes, with its updates renamed to a method of an extension. The SDK hands these over as
// they came; else it makes floats of the numbers that a tool is given and returns.
func exact(out io.Reader) io.Reader {
	in, to := io.Pipe()
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			to.Write(append(renamed(lines.Bytes()), '\n'))
		}
		to.CloseWithError(lines.Err())
	}()
	return in
}

func renamed(line []byte) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) == nil && string(m["method"]) == `"`+acp.ClientMethodSessionUpdate+`"` {
		m["method"] = json.RawMessage(`"` + update + `"`)
		line, _ = json.Marshal(m) // it was JSON
	}
	return line
}

// HandleExtensionMethod takes in an update that was renamed.
func (f *front) HandleExtensionMethod(ctx context.Context, method string, params json.RawMessage) (any, error) {
	if method != update {
		return nil, acp.NewMethodNotFound(method)
	}
	var n acp.SessionNotification
	var as struct {
		Update struct{ RawInput, RawOutput json.RawMessage }
	}
	if err := cmp.Or(json.Unmarshal(params, &n), json.Unmarshal(params, &as)); err != nil {
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

// raw is a value as it came; nil: none did.
func raw(v json.RawMessage) any {
	if v == nil || string(v) == "null" {
		return nil
	}
	return v
}
