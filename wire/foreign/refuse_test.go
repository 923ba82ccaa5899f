package foreign_test

import (
	"encoding/json"
	"testing"

	"github.com/agentteammail/atm/wire/foreign"
)

// Each type refuses what its owner refuses, also when it is no part of another one.
func TestTypesRefuse(t *testing.T) {
	for _, c := range []struct {
		into any
		data string
	}{
		{new(foreign.ToolExecutionRequest), `{}`}, {new(foreign.ToolExecutionRequest), `{"request_id":"r"}`},
		{new(foreign.PermissionOption), `{}`}, {new(foreign.PermissionOption), `{"id":"a"}`},
		{new(foreign.WorkspaceContext), `{}`}, {new(foreign.ModelPreferences), `{"max_tokens":1.5}`},
		{new(foreign.DaemonStreamEvent), `{"kind":"turn_started","turn_id":"t"}`}, {new(foreign.DaemonStreamEvent), `{"kind":"turn_idle","agent":"a","transport":"mcp"}`},
	} {
		if err := json.Unmarshal([]byte(c.data), c.into); err == nil {
			t.Errorf("%T takes %s", c.into, c.data)
		}
	}
}

// The zero value of a type is written as its owner's default.
func TestZeroValues(t *testing.T) {
	for want, v := range map[string]any{
		`{"turn_id":null,"thread_id":null,"transport":null,"turn_status":"idle"}`: foreign.AgentStreamState{},
		`{"session_id":"S","state":"created"}`:                                    foreign.SessionNewResult{SessionID: "S"},
		`{"session_id":"S","state":"created","created_at":"","turn_count":0}`:     foreign.AcpSession{SessionID: "S"},
		`{"request_id":"r","tool_call":{"id":"t","name":"n","arguments":1,"timestamp":""}}`: foreign.ToolExecutionRequest{
			RequestID: "r", ToolCall: foreign.ToolCallRecord{ID: "t", Name: "n", Arguments: json.RawMessage("1")},
		},
	} {
		got, err := json.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("%T: %s, %v\nwant %s", v, got, err, want)
		}
		if err := json.Unmarshal(got, &v); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
}
