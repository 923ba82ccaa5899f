package foreign_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// What the owners of the vocabularies test of their types, written by somebody who has atm's public packages alone:
// Trusted Autonomy's session channel (package session has the rest), vtcode's sessions, and missiond's counts.

// members returns the members of a value's JSON.
func members(t *testing.T, v any) map[string]any {
	t.Helper()
	return remade[map[string]any](t, v)
}

// want fails for each pair of a value and what it should be that differ.
func want(t *testing.T, pairs ...any) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !reflect.DeepEqual(pairs[i], pairs[i+1]) {
			t.Errorf("%#v, not %#v", pairs[i], pairs[i+1])
		}
	}
}

// roundTrip reads what was written of a value.
func roundTrip[T any](t *testing.T, v T) T {
	t.Helper()
	return remade[T](t, v)
}

func remade[T any](t *testing.T, v any) (out T) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSessionEventDisplay(t *testing.T) {
	want(t, fmt.Sprint(foreign.SessionEvent{Kind: "agent_output", Stream: foreign.StdOut, Content: "Hello world"}), "[stdout] Hello world",
		fmt.Sprint(foreign.SessionEvent{Kind: "waiting_for_input", Prompt: "What next?"}), "Waiting for input: What next?")
}

func TestHumanInputDisplay(t *testing.T) {
	want(t, fmt.Sprint(foreign.HumanInput{Kind: "message", Text: "Focus on auth"}), "Message: Focus on auth",
		fmt.Sprint(foreign.HumanInput{Kind: "abort"}), "Abort session")
}

func TestOutputStreamDisplay(t *testing.T) {
	want(t, fmt.Sprint(foreign.StdOut), "stdout", fmt.Sprint(foreign.StdErr), "stderr")
}

func TestInteractiveConfigDefaults(t *testing.T) {
	c := foreign.InteractiveConfig{ResumeCmd: new("old")} // what is read replaces all
	if err := json.Unmarshal([]byte("{}"), &c); err != nil {
		t.Fatal(err)
	}
	want(t, c, foreign.InteractiveConfig{OutputCapture: "pipe", AllowHumanInput: true})
}

// A library for YAML makes JSON of it; here the keys of one map are enough.
func TestInteractiveConfigFromYAML(t *testing.T) {
	text := `enabled: true
output_capture: pty
allow_human_input: true
auto_exit_on: "idle_timeout: 300s"
resume_cmd: "claude --resume {session_id}"`
	object := wire.Object{}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		raw := json.RawMessage(value)
		if !json.Valid(raw) {
			raw = wire.Quote(value)
		}
		object = object.With(name, raw)
	}
	var c foreign.InteractiveConfig
	if err := json.Unmarshal(object.Encode(), &c); err != nil {
		t.Fatal(err)
	}
	want(t, c, foreign.InteractiveConfig{Enabled: true, OutputCapture: "pty", AllowHumanInput: true,
		AutoExitOn: new("idle_timeout: 300s"), ResumeCmd: new("claude --resume {session_id}")})
}

func TestSessionEventRoundTrip(t *testing.T) {
	e := foreign.SessionEvent{Kind: "draft_ready", DraftID: wire.UUID(wire.NewID()), Summary: "Test draft", ArtifactCount: 3}
	want(t, roundTrip(t, e), e)
}

func TestHumanInputRoundTrip(t *testing.T) {
	in := foreign.HumanInput{Kind: "reject", DraftID: wire.UUID(wire.NewID()), ArtifactURI: new("fs://workspace/main.rs"), Reason: "needs error handling"}
	want(t, roundTrip(t, in), in)
}

func TestSessionNewParams(t *testing.T) {
	want(t, members(t, foreign.SessionNewParams{}), map[string]any{})
}

func TestPromptContentText(t *testing.T) {
	want(t, members(t, foreign.PromptContent{Kind: "text", Text: "Hello, world!"}), map[string]any{"type": "text", "text": "Hello, world!"})
}

func TestSessionUpdateMessageDelta(t *testing.T) {
	want(t, members(t, foreign.SessionUpdate{Kind: "message_delta", Delta: "Hello"}), map[string]any{"update_type": "message_delta", "delta": "Hello"})
}

func TestAcpSessionMoves(t *testing.T) {
	now := time.Date(2025, 1, 1, 0, 0, 5, 123456789, time.UTC)
	s := foreign.NewAcpSession("test-session", now.Truncate(time.Second))
	want(t, s, foreign.AcpSession{SessionID: "test-session", State: "created", CreatedAt: "2025-01-01T00:00:05+00:00"})
	s.SetState("active", now)
	s.IncrementTurn(now.Add(time.Second))
	want(t, s.State, foreign.AcpSessionState("active"), *s.LastActivityAt, "2025-01-01T00:00:06.123456789+00:00", s.TurnCount, uint32(1),
		roundTrip(t, s), s)
}

func TestServerRequestUpdate(t *testing.T) {
	call := foreign.ToolCallRecord{ID: "tc-1", Name: "unified_search", Arguments: json.RawMessage(`{"query":"fn main"}`), Timestamp: "2025-01-01T00:00:00Z"}
	u := foreign.SessionUpdate{Kind: "server_request", Request: foreign.ToolExecutionRequest{RequestID: "req-1", ToolCall: call}}
	got := members(t, u)
	want(t, got["update_type"], "server_request", got["request"].(map[string]any)["request_id"], "req-1", roundTrip(t, u), u)
}

func TestToolExecutionResultSuccess(t *testing.T) {
	got := members(t, foreign.ToolExecutionResult{RequestID: "req-1", ToolCallID: "tc-1", Output: json.RawMessage(`{"matches":[]}`), Success: true})
	_, hasError := got["error"]
	want(t, got["success"], true, hasError, false)
}

func TestToolExecutionResultFailure(t *testing.T) {
	got := members(t, foreign.ToolExecutionResult{RequestID: "req-1", ToolCallID: "tc-1", Error: new("permission denied")})
	want(t, got["success"], false, got["error"], "permission denied")
}

func TestStats(t *testing.T) {
	data, err := os.ReadFile("../../testdata/wire/behaviour.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Function string
		States   []foreign.SlotState
		Result   json.RawMessage
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range all {
		if c.Function == "PTYManager.get_stats" {
			n++
			got, _ := json.Marshal(foreign.StatsOf(c.States...))
			want(t, members(t, json.RawMessage(got)), members(t, c.Result))
		}
	}
	want(t, n, 6,
		foreign.StatsOf(reducer.WordStarting, reducer.WordIdle, reducer.WordBusy, reducer.WordBlocked, reducer.WordLimited,
			reducer.WordOff, reducer.WordError, reducer.WordUnknown, reducer.WordPerson),
		foreign.ManagerStats{Total: 9, Running: 5, Idle: 1, Busy: 2, Stopped: 2})
}
