package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire"
)

// vector is one value of another vocabulary, as its owner writes it.
type vector struct {
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	JSON     json.RawMessage `json:"json"`
	Text     *string         `json:"json_text"`
	Display  *string         `json:"display"`
	Proposed json.RawMessage `json:"proposed_json"`
}

func vectors[T any](t testing.TB, file string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "wire", file))
	must(t, err)
	var out []T
	must(t, json.Unmarshal(data, &out))
	return out
}

// owners maps the numbers of the seeds to vocabularies.
var owners = map[string]string{"000": "session", "002": "missiond", "003": "acp", "004": "daemon"}

// types are the types by the names that their owners give them.
var types = map[string]*jsonType{
	"daemon.DaemonStreamEvent": daemonEvent,
	"session.SessionEvent":     sessionEvent, "session.OutputStream": outputStream, "session.HumanInput": humanInput,
	"session.InteractiveSession": interactiveSession, "session.InteractiveSessionState": sessionState, "session.SessionMessage": sessionMessage,
	"missiond.SessionState": slotState, "missiond.PTYAgentInfo": ptyAgentInfo,
	"acp.SessionUpdate": bareUpdate, "acp.SessionUpdateNotification": sessionUpdateNotification,
	"acp.SessionState": acpState, "acp.TurnStatus": acpTurnEnd, "acp.AcpSession": acpSession,
	"acp.SessionNewParams": sessionNewParams, "acp.SessionNewResult": sessionNewResult,
	"acp.SessionLoadParams": sessionLoadParams, "acp.SessionLoadResult": sessionLoadResult,
	"acp.ConversationTurn": conversationTurn, "acp.PromptContent": promptContent,
	"acp.SessionPromptParams": sessionPromptParams, "acp.SessionPromptResult": sessionPromptResult,
	"acp.SessionCancelParams": sessionCancelParams, "acp.RequestPermissionParams": permissionParams,
	"acp.RequestPermissionResult": permissionResult, "acp.ToolCallRecord": toolCallRecord,
	"acp.ToolExecutionResult": toolExecutionResult, "acp.ServerRequestNotification": serverRequest,
	"session.InteractiveConfig": interactiveConfig, "missiond.ManagerEvent": managerEvent,
	"daemon.TurnStatusWire": turnStatusWire, "daemon.StreamTurnStatus": streamTurnStatus, "daemon.AgentStreamState": agentStreamState,

	// Nobody reads these.
	"missiond.PTYExecuteResult": inner(required("response", text), required("duration_ms", uint64s)),
	"missiond.ManagerStats": inner(required("total", uint64s), required("running", uint64s), required("idle", uint64s),
		required("busy", uint64s), required("stopped", uint64s)),
}

// marshalled returns a value as its type's owner writes it, or the error.
func marshalled(name string, v any) string {
	text, err := types[name].marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// ofSession are the types whose Go types are in package session.
var ofSession = []string{"session.InteractiveSession", "session.InteractiveSessionState", "session.SessionMessage"}

// goTypes are the other Go types, which must agree with the types.
var goTypes = map[string]func(name string, data []byte) (any, error){
	"session.SessionEvent": typed[SessionEvent], "session.HumanInput": typed[HumanInput], "session.OutputStream": typed[OutputStream],
	"session.InteractiveConfig": typed[InteractiveConfig],

	"missiond.SessionState": typed[SlotState], "missiond.PTYAgentInfo": typed[PTYAgentInfo], "missiond.ManagerEvent": typed[ManagerEvent],
	"missiond.PTYExecuteResult": typed[PTYExecuteResult], "missiond.ManagerStats": typed[ManagerStats],

	"acp.SessionUpdate": typed[SessionUpdate], "acp.SessionUpdateNotification": typed[SessionUpdateNotification],
	"acp.SessionState": typed[AcpSessionState], "acp.TurnStatus": typed[AcpTurnStatus], "acp.AcpSession": typed[AcpSession],
	"acp.SessionNewParams": typed[SessionNewParams], "acp.SessionNewResult": typed[SessionNewResult],
	"acp.SessionLoadParams": typed[SessionLoadParams], "acp.SessionLoadResult": typed[SessionLoadResult],
	"acp.ConversationTurn": typed[ConversationTurn], "acp.PromptContent": typed[PromptContent],
	"acp.SessionPromptParams": typed[SessionPromptParams], "acp.SessionPromptResult": typed[SessionPromptResult],
	"acp.SessionCancelParams": typed[SessionCancelParams], "acp.RequestPermissionParams": typed[RequestPermissionParams],
	"acp.RequestPermissionResult": typed[RequestPermissionResult], "acp.ToolCallRecord": typed[ToolCallRecord],
	"acp.ToolExecutionResult": typed[ToolExecutionResult], "acp.ServerRequestNotification": typed[ServerRequestNotification],

	"daemon.DaemonStreamEvent": typed[DaemonStreamEvent], "daemon.TurnStatusWire": typed[TurnStatusWire],
	"daemon.StreamTurnStatus": typed[StreamTurnStatus], "daemon.AgentStreamState": typed[AgentStreamState],
}

// typed reads a value as its Type and as encoding/json do, which must agree.
func typed[T any](name string, data []byte) (any, error) {
	var v, byLibrary T
	err := types[name].unmarshal(data, &v)
	if other := json.Unmarshal(data, &byLibrary); (other == nil) != (err == nil) {
		return v, fmt.Errorf("json.Unmarshal: %v; Unmarshal: %v", other, err)
	}
	if err == nil && (marshalled(name, v) != marshalled(name, byLibrary) || marshalled(name, v) != marshalled(name, &v)) {
		return v, fmt.Errorf("json.Unmarshal: %+v, Unmarshal: %+v", byLibrary, v)
	}
	return v, err
}

// isSameJSON reports whether two texts are the same JSON: encoding/json escapes more than it must.
func isSameJSON(a, b []byte) bool {
	canonical := func(raw []byte) string {
		v := jsontext.Value(bytes.Clone(raw))
		_ = v.Canonicalize()
		return string(v)
	}
	return canonical(a) == canonical(b)
}

// Every vector is read, written back to the letter, and displayed as its owner displays it.
func TestVectors(t *testing.T) {
	files := map[string]int{
		"000-001_session_channel.json": 36, "002_pty_manager.json": 19, "003_acp_session.json": 49, "004_stream_events.json": 21,
	}
	total, seen := 0, map[string]bool{}
	for file, want := range files {
		all := vectors[vector](t, file)
		if len(all) != want {
			t.Errorf("%s has %d vectors, not %d", file, len(all), want)
		}
		for _, v := range all {
			total++
			seen[owners[file[:3]]+"."+v.Type] = true
			t.Run(file[:3]+"/"+v.Type+"/"+v.Name, func(t *testing.T) { v.check(t, file[:3]) })
		}
	}
	if total != 125 {
		t.Errorf("%d vectors, not 125", total)
	}
	for name := range types {
		if !seen[name] {
			t.Errorf("no vector is a %s", name)
		}
		if goTypes[name] == nil && !slices.Contains(ofSession, name) {
			t.Errorf("%s has no Go type", name)
		}
	}
}

func (v vector) check(t *testing.T, number string) {
	name, text := owners[number]+"."+v.Type, ""
	if v.Type == "SessionChannelError" { // package session tests its errors
		return
	}
	switch {
	case v.Text != nil:
		text = *v.Text
	case v.Proposed != nil:
		var b bytes.Buffer
		json.Compact(&b, v.Proposed)
		text = b.String()
	default:
		t.Fatal("the vector has no JSON")
	}
	got := json.RawMessage(text)
	for _, in := range [][]byte{got, append([]byte(" \n"), indented(t, text)...)} {
		out, err := types[name].canonicalOf(in)
		must(t, err)
		if got = out; string(got) != text {
			t.Error(cmp.Diff(text, string(got)))
		}
	}
	if read := goTypes[name]; read != nil {
		value, err := read(name, []byte(text))
		if err != nil || marshalled(name, value) != text {
			t.Errorf("%v, %s", err, cmp.Diff(text, marshalled(name, value)))
		}
		if byLibrary, err := json.Marshal(value); err != nil || !isSameJSON(byLibrary, []byte(text)) {
			t.Errorf("json.Marshal: %s, %v", byLibrary, err)
		}
		if v.Display != nil && fmt.Sprint(value) != *v.Display {
			t.Errorf("shown as %v, not %q", value, *v.Display)
		}
	}
	if v.Type == "DaemonStreamEvent" {
		if shown := Line(event(t, text, "cli")); shown != *v.Display {
			t.Errorf("shown as %q, not %q", shown, *v.Display)
		}
	}
}

func indented(t *testing.T, text string) []byte {
	var b bytes.Buffer
	must(t, json.Indent(&b, []byte(text), "", "\t"))
	return b.Bytes()
}

// We accept what the owners accept and write it as they do; we refuse what they refuse, and say where.
func TestVectorsReading(t *testing.T) {
	type reading struct {
		Seed, Type, Name, Input, Canonical string
		OK                                 bool
	}
	all := vectors[reading](t, "deserialize.json")
	if len(all) != 33 {
		t.Errorf("%d cases, not 33", len(all))
	}
	for _, c := range all {
		t.Run(c.Type+"/"+c.Name, func(t *testing.T) {
			name := owners[c.Seed] + "." + c.Type
			got, err := types[name].canonicalOf([]byte(c.Input))
			if c.OK && (err != nil || string(got) != c.Canonical) {
				t.Errorf("%v, %s", err, cmp.Diff(c.Canonical, string(got)))
			}
			if at, _ := err.(*wire.DecodeError); !c.OK && (at == nil || at.Column < 1) {
				t.Errorf("read as %s, %v", got, err)
			}
			if read := goTypes[name]; read != nil {
				value, err := read(name, []byte(c.Input))
				if (err == nil) != c.OK || c.OK && marshalled(name, value) != c.Canonical {
					t.Errorf("%s, %v", marshalled(name, value), err)
				}
			}
		})
	}
}

// An event names its agent, whatever its kind calls it.
func TestVectorsOfAgents(t *testing.T) {
	n := 0
	for _, c := range vectors[struct {
		Function string
		Event    json.RawMessage
		Result   json.RawMessage
	}](t, "behaviour.json") {
		if c.Function != "DaemonStreamEvent.agent" {
			continue
		}
		n++
		if got := AgentOf(event(t, string(c.Event), "cli")); string(wire.Quote(got)) != string(c.Result) {
			t.Errorf("%s: %s, not %s", c.Event, got, c.Result)
		}
	}
	if n != 5 {
		t.Errorf("%d cases, not 5", n)
	}
}

// Cases of reading and writing that the vectors do not have.
func TestRecords(t *testing.T) {
	accept := func(name, in, want string) {
		t.Helper()
		got, err := types[name].canonicalOf([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s\n gave %s, %v\nwant %s", in, got, err, want)
		}
	}
	refuse := func(name, in, want string) {
		t.Helper()
		if _, err := types[name].canonicalOf([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", in, err, want)
		}
	}
	for _, n := range []string{"0.7", "1.0", "1e-7", "0.10"} { // a number is kept as it came
		model := `{"model_preferences":{"temperature":` + n + `}}`
		accept("acp.SessionNewParams", model, model)
	}

	day := func(at string) string { return `{"sender":"s","content":"","timestamp":"` + at + `"}` }
	for in, out := range map[string]string{
		"2026-03-01T10:00:00Z": "2026-03-01T10:00:00Z", "2026-03-01T10:00:00.1Z": "2026-03-01T10:00:00.100Z",
		"2026-03-01T10:00:00.1234567890123Z": "2026-03-01T10:00:00.123456789Z", "2026-03-01T10:00:00.000001-00:30": "2026-03-01T10:30:00.000001Z",
	} {
		accept("session.SessionMessage", day(in), day(out))
	}
	refuse("session.SessionMessage", day("2026-03-01"), "column 40: timestamp: must be a time")
	refuse("session.SessionMessage", day("2026-02-30T00:00:00Z"), "timestamp: must be a time")

	// Any value keeps its numbers, its strings and the order of its keys.
	accept("acp.ToolExecutionResult",
		`{"request_id":"r","tool_call_id":"c","output": { "b" : [ 1e400, -0.10 ] ,"a":"\u00e9\/<\u2028\ud83d\ude00\ud800" },"success":true,"error":null}`,
		`{"request_id":"r","tool_call_id":"c","output":{"b":[1e400,-0.10],"a":"\u00e9\/<\u2028\ud83d\ude00\ud800"},"success":true}`)
	refuse("acp.SessionUpdateNotification", `{"session_id":"s","update_type":"message_delta","delta":""}`, "turn_id is missing")
	refuse("acp.SessionUpdate", `{"update_type":"tool_call_start","tool_call":{"id":"c","name":"n","id":"c"}}`, "appears twice")
	refuse("acp.SessionPromptParams", "{\"session_id\":\"s\",\"content\":[\n{\"type\":\"text\",\"text\":7}]}", "line 1, column 29: content: text: must be a string")

	accept("daemon.DaemonStreamEvent", `{"kind":"turn_idle","agent":"\ud83d\ude00\ufffd","turn_id":"","transport":""}`, `{"kind":"turn_idle","agent":"😀�","turn_id":"","transport":""}`)
	counters := func(n string) string {
		return `{"kind":"dropped_counters","agent_id":"a","dropped":` + n + `,"unknown":0}`
	}
	for _, n := range []string{"18446744073709551616", "-1", "-0", "1e2", "1.0", `"1"`, "null", "true"} {
		refuse("daemon.DaemonStreamEvent", counters(n), "dropped: must be a whole number from 0 to 18446744073709551615")
	}
	for _, id := range []string{"6f1c2a34-0b7e-4c1d-9a550-123456789ab", "6f1c2a340b7e4c1d9a550123456789a", "{6f1c2a340b7e4c1d9a550123456789ab}", "urn:uuid:6f1c2a340b7e4c1d9a550123456789ab", ""} {
		if _, err := wire.ParseUUID(id); err == nil {
			t.Errorf("%q is a UUID", id)
		}
	}
	for _, id := range []string{"urn:uuid:6F1C2A34-0b7e-4c1d-9a55-0123456789ab", "{6f1c2a34-0b7e-4c1d-9a55-0123456789AB}"} {
		if u, err := wire.ParseUUID(id); err != nil || u != "6f1c2a34-0b7e-4c1d-9a55-0123456789ab" {
			t.Error(u, err)
		}
	}
	for in, want := range map[string]error{`[]`: wire.ErrNotObject, `"x"`: wire.ErrNotObject} {
		if _, err := daemonEvent.canonicalOf([]byte(in)); err != want {
			t.Errorf("%s: %v", in, err)
		}
	}
	refuse("daemon.DaemonStreamEvent", `{"kind":`, "line 1, column 9: the text ends in the middle")
	refuse("session.OutputStream", `std_out`, "line 1, column 1")
	refuse("session.OutputStream", ``, "the text ends in the middle")
}
