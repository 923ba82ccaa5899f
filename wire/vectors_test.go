package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// vector is one value of another vocabulary, as its owner writes it.
type vector struct {
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	JSON     json.RawMessage `json:"json"`
	Text     *string         `json:"json_text"`
	Display  *string         `json:"display"`
	Debug    *string         `json:"debug"`
	Proposed json.RawMessage `json:"proposed_json"`
}

func vectors[T any](t testing.TB, file string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "wire", file))
	must(t, err)
	var out []T
	must(t, json.Unmarshal(data, &out))
	return out
}

// owners maps the numbers of the seeds to vocabularies.
var owners = map[string]string{"000": "session", "002": "missiond", "003": "acp", "004": "daemon"}

// marshalled returns a value as MarshalAs writes it, or the error.
func marshalled(name string, v any) string {
	text, err := MarshalAs(name, v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// goTypes are the types of the vocabularies that have a Go type, which must agree with the schema.
var goTypes = map[string]func(name string, data []byte) (any, error){
	"session.SessionEvent":   typed[SessionEvent],
	"session.HumanInput":     typed[HumanInput],
	"session.SessionMessage": typed[SessionMessage],
}

// typed reads a value as UnmarshalAs and as encoding/json do, which must agree.
func typed[T any](name string, data []byte) (any, error) {
	var v, byLibrary T
	err := UnmarshalAs(name, data, &v)
	if other := json.Unmarshal(data, &byLibrary); (other == nil) != (err == nil) {
		return v, fmt.Errorf("json.Unmarshal: %v; UnmarshalAs: %v", other, err)
	}
	if err == nil && marshalled(name, v) != marshalled(name, byLibrary) {
		return v, fmt.Errorf("json.Unmarshal: %+v, UnmarshalAs: %+v", byLibrary, v)
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

// sessionErrors are the vectors that are errors and have no JSON.
var sessionErrors = map[string]error{
	"channel_closed": ErrChannelClosed,
	"other":          &SessionError{"boom"},
	"transition":     (&InteractiveSession{State: SessionCompleted}).Transition(SessionActive, time.Time{}),
}

// Every vector is read, written back to the letter, and displayed as its owner displays it.
func TestVectors(t *testing.T) {
	files := map[string]int{
		"000-001_session_channel.json": 36, "002_pty_manager.json": 19, "003_acp_session.json": 49, "004_stream_events.json": 21,
	}
	total, types := 0, map[string]bool{}
	for file, want := range files {
		all := vectors[vector](t, file)
		if len(all) != want {
			t.Errorf("%s has %d vectors, not %d", file, len(all), want)
		}
		for _, v := range all {
			total++
			types[owners[file[:3]]+"."+v.Type] = true
			t.Run(file[:3]+"/"+v.Type+"/"+v.Name, func(t *testing.T) { v.check(t, file[:3]) })
		}
	}
	if total != 125 {
		t.Errorf("%d vectors, not 125", total)
	}
	for name, s := range schemas() {
		vocabulary, _, isOfTable := strings.Cut(name, ".")
		if isOfTable && s.check == nil && s.element == nil && len(s.fields)+len(s.kinds) == 0 {
			t.Errorf("nothing says what a %s is", name)
		}
		isPart := slices.Contains([]string{"acp.WorkspaceContext", "acp.ModelPreferences", "acp.PermissionOption", "acp.ToolRequest", "acp.Call", "acp.CurrentUpdate", "acp.OlderCall", "acp.OlderResponse", "acp.OlderResult"}, name)
		if slices.Contains(slices.Collect(maps.Values(owners)), vocabulary) && !types[name] && !isPart {
			t.Errorf("no vector is a %s", name)
		}
	}
}

func (v vector) check(t *testing.T, number string) {
	if v.Type == "SessionChannelError" {
		if err := sessionErrors[v.Name]; err == nil || err.Error() != *v.Display {
			t.Errorf("%v, not %s", err, *v.Display)
		}
		return
	}
	name, text := owners[number]+"."+v.Type, ""
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
		out, err := Canonical(name, in)
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
	} else if v.Display != nil {
		shown := unquote(got)
		if v.Type == "OutputStream" {
			shown = strings.Trim(SessionEvent{Kind: "agent_output", Stream: shown}.String(), "[] ")
		}
		if v.Type == "DaemonStreamEvent" {
			shown = Line(event(t, text, "cli"))
		}
		if shown != *v.Display {
			t.Errorf("shown as %q, not %q", shown, *v.Display)
		}
	}
	if v.Debug != nil && rustDebug(v.Type, schemas()[name], got) != *v.Debug {
		t.Errorf("shown as %q, not %q", rustDebug(v.Type, schemas()[name], got), *v.Debug)
	}
}

// rustDebug returns what Rust's {:?} prints of a record.
func rustDebug(name string, s *schema, raw json.RawMessage) string {
	o, fields, parts := parseObject(raw), s.fields, []string{}
	if s.tag != "" {
		name, fields = rustName(o.Text(s.tag)), s.kinds[o.Text(s.tag)]
	}
	for _, f := range fields {
		value := string(o.Get(f.name))
		switch {
		case f.isOptional && value == "":
			value = "None"
		case f.isOptional:
			value = "Some(" + value + ")"
		case f.schema == schemas()["missiond.SessionState"] || strings.HasSuffix(f.name, "_state"):
			value = rustName(unquote(o.Get(f.name)))
		}
		snake := regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(f.name, func(s string) string { return "_" + strings.ToLower(s) })
		parts = append(parts, snake+": "+value)
	}
	return name + " { " + strings.Join(parts, ", ") + " }"
}

// rustName returns the name of a Rust variant: ToolRunning.
func rustName(word string) string {
	return regexp.MustCompile("(^|_)[a-z]").ReplaceAllStringFunc(word, func(s string) string { return strings.ToUpper(strings.Trim(s, "_")) })
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
			got, err := Canonical(name, []byte(c.Input))
			if c.OK && (err != nil || string(got) != c.Canonical) {
				t.Errorf("%v, %s", err, cmp.Diff(c.Canonical, string(got)))
			}
			if at, _ := err.(*DecodeError); !c.OK && (at == nil || at.Column < 1) {
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

// Our functions behave as the owners' do. (The reducer tests AgentStreamState.apply.)
func TestVectorsBehaviour(t *testing.T) {
	type behaviour struct {
		Seed, Function, From, To, State, Error string
		OK                                     bool
		Elapsed                                int64 `json:"elapsed_seconds"`
		Event                                  json.RawMessage
		Result                                 json.RawMessage
	}
	all := vectors[behaviour](t, "behaviour.json")
	if len(all) != 54 {
		t.Errorf("%d cases, not 54", len(all))
	}
	count := map[string]int{}
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range all {
		count[c.Function]++
		var got any
		switch c.Function {
		case "InteractiveSession.transition":
			s := InteractiveSession{State: InteractiveSessionState(c.From)}
			err := s.Transition(InteractiveSessionState(c.To), now)
			if (err == nil) != c.OK || err != nil && err.Error() != c.Error {
				t.Errorf("%s to %s: %v", c.From, c.To, err)
			}
			if moved := s.UpdatedAt.Equal(now) && string(s.State) == c.To; moved != c.OK {
				t.Errorf("%s to %s: now %v", c.From, c.To, s)
			}
			continue
		case "InteractiveSession.is_alive":
			got = InteractiveSessionState(c.State).Alive()
		case "InteractiveSession.elapsed_display":
			got = (&InteractiveSession{CreatedAt: now}).Elapsed(now.Add(time.Duration(c.Elapsed) * time.Second))
		case "InteractiveSession.add_draft", "PTYManager.get_stats": // session's and teams'
			continue
		case "DaemonStreamEvent.agent":
			got = event(t, string(c.Event), "cli").AgentName()
		case "AgentStreamState.apply":
			continue
		default:
			t.Errorf("nobody does %s", c.Function)
		}
		have, _ := json.Marshal(got)
		var want bytes.Buffer
		json.Compact(&want, c.Result)
		if string(have) != want.String() {
			t.Errorf("%s %s%v: %s, not %s", c.Function, c.State, c.Elapsed, have, want.String())
		}
	}
	want := map[string]int{
		"InteractiveSession.transition": 16, "InteractiveSession.is_alive": 4, "InteractiveSession.elapsed_display": 11,
		"InteractiveSession.add_draft": 1, "PTYManager.get_stats": 6, "AgentStreamState.apply": 11, "DaemonStreamEvent.agent": 5,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Error(diff)
	}
}

// Cases of reading and writing that the vectors do not have.
func TestRecords(t *testing.T) {
	accept := func(name, in, want string) {
		t.Helper()
		got, err := Canonical(name, []byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s\n gave %s, %v\nwant %s", in, got, err, want)
		}
	}
	refuse := func(name, in, want string) {
		t.Helper()
		if _, err := Canonical(name, []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
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
		if _, err := ParseUUID(id); err == nil {
			t.Errorf("%q is a UUID", id)
		}
	}
	for _, id := range []string{"urn:uuid:6F1C2A34-0b7e-4c1d-9a55-0123456789ab", "{6f1c2a34-0b7e-4c1d-9a55-0123456789AB}"} {
		if u, err := ParseUUID(id); err != nil || u != "6f1c2a34-0b7e-4c1d-9a55-0123456789ab" {
			t.Error(u, err)
		}
	}
	for in, want := range map[string]error{`[]`: ErrNotObject, `"x"`: ErrNotObject} {
		if _, err := Canonical("daemon.DaemonStreamEvent", []byte(in)); err != want {
			t.Errorf("%s: %v", in, err)
		}
	}
	refuse("daemon.DaemonStreamEvent", `{"kind":`, "line 1, column 9: the text ends in the middle")
	refuse("session.OutputStream", `std_out`, "line 1, column 1")
	refuse("session.OutputStream", ``, "the text ends in the middle")
}
