package codex

import (
	"bytes"
	"path/filepath"
	"slices"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/wire"
)

// maxTail is how much of a transcript is read, from its end.
const maxTail = 1 << 20

// addUsage reports the totals of the conversation, which Codex writes into its transcript after each answer of the model:
//
//	{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{…},"last_token_usage":{…},"model_context_window":258400}}}
//
// The input has the cached tokens in it, and the output those of its reasoning. What the context holds is the last answer's
// total, as in Codex's own window. A file that cannot be read tells nothing.
func addUsage(c *agents.Call) {
	path := c.In.Text("transcript_path")
	if !filepath.IsAbs(path) {
		return
	}
	lines := bytes.Split(agents.Tail(path, maxTail), []byte{'\n'})
	for _, line := range slices.Backward(lines[1:]) { // the first one may be cut
		if !bytes.Contains(line, []byte(`"token_count"`)) {
			continue
		}
		o, _ := wire.ReadObject(line)
		payload := o.Object("payload")
		info := payload.Object("info")
		total := info.Object("total_token_usage")
		if o.Text("type") != "event_msg" || payload.Text("type") != "token_count" || total == nil {
			continue
		}
		c.AddUsage(
			agents.Figure{Field: wire.FieldInputTokens, Value: total.Get("input_tokens")},
			agents.Figure{Field: wire.FieldOutputTokens, Value: total.Get("output_tokens")},
			agents.Figure{Field: wire.FieldCachedTokens, Value: total.Get("cached_input_tokens")},
			agents.Figure{Field: wire.FieldTotalTokens, Value: total.Get("total_tokens")},
			agents.Figure{Field: wire.FieldContextUsed, Value: info.Object("last_token_usage").Get("total_tokens")},
			agents.Figure{Field: wire.FieldContextSize, Value: info.Get("model_context_window")},
		)
		return
	}
}
