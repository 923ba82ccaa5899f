package foreign

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire"
)

const (
	turnStarted = `{"kind":"turn_started","agent":"bob","thread_id":"th","turn_id":"t1","transport":"mcp"}`
	acpUpdate   = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"tool_call","toolCallId":"call_1","title":"Deliver to lead","kind":"other","status":"pending"}}}`
	acpAsks     = `{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"sess_1","toolCall":{"toolCallId":"call_1","title":"Deliver to lead"},"options":[{"optionId":"once","name":"Send","kind":"allow_once"}]}}`
	codexStart  = `{"method":"turn/started","params":{"threadId":"th-1","turn":{"id":"tu-1","items":[],"status":"inProgress"}}}`
	codexEnd    = `{"method":"turn/completed","params":{"threadId":"th-1","turn":{"id":"tu-1","items":[],"status":"completed","error":null}},"emittedAtMs":1795158195503}`
)

func statusCall(status string) string {
	return `{"method":"thread/status/changed","params":{"threadId":"th-1","status":` + status + `}}`
}

// fieldsOf lists an event's fields under their plain names, for comparison.
func fieldsOf(e *wire.Event) string {
	b := e.Body()
	out := e.Kind
	for _, name := range []string{"session", "thread_id", "turn_id", "status", "transport", "agent", "tool", "tool_call_id", "prompt", "error_summary", "delta", "previous", "new", "code"} {
		s := b.Text(name)
		if name == "agent" {
			s = AgentOf(e)
		}
		if s != "" {
			out += " " + name + "=" + s
		} else if n, ok := b.Uint(name); ok {
			out += fmt.Sprintf(" %s=%d", name, n)
		}
	}
	return out
}

// An event of any vocabulary is kept whole and has its fields under the same plain names.
func TestAdopt(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{turnStarted, "turn_started thread_id=th turn_id=t1 transport=mcp agent=bob"},
		{`{"kind":"turn_started"}`, "turn_started"},
		{`{"kind":"turn_completed","status":"failed","turn_id":"","agent":null}`, "turn_completed status=failed"},
		{`{"kind":"stream_error","agent_id":"bob","session_id":"s","error_summary":"boom"}`, "stream_error session=s agent=bob error_summary=boom"},
		{`{"kind":"dropped_counters","agent_id":"proxy:all","dropped":18446744073709551615,"unknown":2}`, "dropped_counters agent=proxy:all"},
		{`{"kind":"turn_paused","agent":"bob","new":7}`, "turn_paused agent=bob new=7"},
		{`{"event_type":"agent_output","stream":"std_out","content":"x","session_id":"s","turn_id":"t"}`, "agent_output session=s turn_id=t"},
		{`{"event_type":"status_update","message":"x","kind":"y"}`, "status_update"},
		{`{"sessionUpdate":"tool_call","kind":"read"}`, "tool_call_start"},
		{`{"event_type":"status_update","message":"x","session":{"id":"s"},"turn_id":5,"event_id":12345}`, "status_update turn_id=5"},
		{`{"kind":"turn_idle","agent":"bob","turn_id":"t","transport":"mcp","session":{"id":5}}`, "turn_idle turn_id=t transport=mcp agent=bob"},
		{`{"kind":"something_new","turn_id":5}`, "something_new turn_id=5"},
		{`{"kind":"turn_idle","agent":"bob","turn_id":"t","transport":"mcp","from":"x","to":"y"}`, "turn_idle turn_id=t transport=mcp agent=bob"},
		{`{"event_type":"status_update","message":"x","body":{},"subject":""}`, "status_update"},
		{`{"event_type":"waiting_for_input","prompt":"What?"}`, "waiting_for_input prompt=What?"},
		{`{"event_type":"brand_new","stream":"stdout"}`, "brand_new"},
		{`{"session_id":"s","turn_id":"t","update_type":"tool_call_start","tool_call":{"id":"c","name":"grep","arguments":null,"timestamp":""}}`, "tool_call_start session=s turn_id=t tool=grep tool_call_id=c"},
		{`{"update_type":"server_request","request":{"request_id":"r","tool_call":{"id":"c","name":"grep","arguments":null,"timestamp":""}}}`, "server_request tool=grep tool_call_id=c"},
		{`{"kind":"fetch","method":"GET","params":{"turn_id":"t"}}`, "fetch"},
		{`{"update_type":"turn_complete","status":"cancelled"}`, "turn_completed status=cancelled"},
		{`{"update_type":"error","code":"E1","message":"boom"}`, "stream_error error_summary=boom code=E1"},
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}`, "message_delta delta=hi"},
		{`{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}}`, "tool_call_end session=s status=completed tool_call_id=c"},
		{`{"workspace":{"root_path":"/repo","name":"repo","active_files":["a.go"]},"model_preferences":{"model_id":"m"}}`, "session_new"},
		{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"metadata":{"k":1}}}`, "session_new"},
		{`{"jsonrpc":"2.0","id":1,"result":{"session_id":"s","state":"created"}}`, "session_start session=s"},
		{`{"session_id":"s","state":"created"}`, "session_start session=s"},
		{`{"method":"session/load","params":{"session_id":"s"}}`, "session_load session=s"},
		{`{"session":{"session_id":"s","state":"active","created_at":"x"},"history":[]}`, "session_start session=s"},
		{`{"session_id":"s","content":[{"type":"text","text":"Look at this:"},{"type":"context","path":"main.go","content":"package main","language":"go"},{"type":"image","data":"aGk=","mime_type":"image/png"}]}`,
			"turn_started session=s prompt=Look at this:\n<context path=\"main.go\" language=\"go\">\npackage main\n</context>\n[image/png]"},
		{`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"session_id":"s","content":[{"type":"text","text":"hi"}]}}`, "turn_started session=s prompt=hi"},
		{`{"turn_id":"t","response":"done","status":"awaiting_input"}`, "turn_completed turn_id=t status=awaiting_input"},
		{`{"jsonrpc":"2.0","id":2,"result":{"turn_id":"t","status":"cancelled"}}`, "turn_completed turn_id=t status=cancelled"},
		{`{"method":"session/cancel","params":{"session_id":"s"}}`, "session_cancel session=s"},
		{`{"jsonrpc":"2.0","id":1,"result":{"session_id":"s"}}`, "session_start session=s"},
		{`{"session_id":"s","turn_id":"t"}`, "session_cancel session=s turn_id=t"},
		{`{"method":"session/update","params":{"session_id":"s","turn_id":"t","update_type":"message_delta","delta":"x"}}`, "message_delta session=s turn_id=t delta=x"},
		{`{"method":"client/response","params":{"request_id":"r","tool_call_id":"c","output":null,"success":true}}`, "tool_result tool_call_id=c"},
		{acpUpdate, "tool_call_start session=sess_1 status=pending tool=Deliver to lead tool_call_id=call_1"},
		{acpAsks, "confirm_required session=sess_1 tool=Deliver to lead tool_call_id=call_1 prompt=Deliver to lead"},
		{codexStart, "turn_started thread_id=th-1 turn_id=tu-1 status=inProgress transport=app-server"},
		{codexEnd, "turn_completed thread_id=th-1 turn_id=tu-1 status=completed transport=app-server"},
		{`{"jsonrpc":"2.0","method":"turn/completed","params":{"thread_id":"th","turn_id":"tu","status":"interrupted"}}`, "turn_completed thread_id=th turn_id=tu status=interrupted transport=app-server"},
		{`{"method":"turn/completed","params":{"turnId":"tu","turn":{"status":"inProgress"}}}`, "turn_completed turn_id=tu status=failed transport=app-server"},
		{statusCall(`{"type":"idle"}`), "turn_idle thread_id=th-1 transport=app-server"},
		{statusCall(`{"type":"active","activeFlags":["waitingOnApproval"]}`), "confirm_required thread_id=th-1 transport=app-server"},
		{statusCall(`{"type":"active","activeFlags":["waitingOnUserInput"]}`), "waiting_for_input thread_id=th-1 transport=app-server"},
		{statusCall(`{"type":"active","activeFlags":[]}`), "thread_active thread_id=th-1 transport=app-server"},
		{statusCall(`{"type":"systemError"}`), "turn_completed thread_id=th-1 status=failed transport=app-server"},
		{statusCall(`{"type":"notLoaded"}`), "thread_status_changed thread_id=th-1 transport=app-server"},
		{`{"method":"error","params":{"threadId":"th","turnId":"tu","willRetry":true,"error":{"message":"overloaded"}}}`, "stream_error thread_id=th turn_id=tu transport=app-server error_summary=overloaded"},
		{`{"method":"thread/started","params":{"thread":{"id":"th"}}}`, "session_start thread_id=th transport=app-server"},
		{`{"method":"thread/closed","params":{"threadId":"th"}}`, "session_end thread_id=th transport=app-server"},
		{`{"method":"item/agentMessage/delta","params":{"turnId":"tu","delta":"x"}}`, "item_agentmessage_delta turn_id=tu transport=app-server delta=x"},
		{`{"kind":"confirm_required","id":"p1","tool":"Bash","prompt":"rm?","options":[{"id":"y","label":"Yes"}],"session":"s","event_id":"e"}`, "confirm_required session=s tool=Bash prompt=rm?"},
		{`{"kind":"session_start","source":"startup"}`, "session_start"},
		{`{"kind":"exited","code":-1,"signal":null}`, "exited"},
		{`{"kind":"confirm_required","slot_id":"bob","prompt":"Run?","tool_info":{"tool":{"name":"Bash"}}}`, "confirm_required agent=bob tool=Bash prompt=Run?"},
		{`{"kind":"state_change","slot_id":"bob","new_state":"idle","prev_state":"starting"}`, "state_change agent=bob previous=starting new=idle"},
	} {
		e, err := Adopt([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := fieldsOf(&e); got != c.want {
			t.Errorf("%s\n says %s\nwants %s", c.in, got, c.want)
		}
		if string(e.Wire) != c.in || e.Seq != 0 || e.Source != "" {
			t.Errorf("%s became %s", c.in, e.Append(nil))
		}
		spaced, err := Adopt([]byte(" " + strings.ReplaceAll(c.in, `":`, "\" : \r\n\t") + "\n"))
		if err != nil || string(spaced.Append(nil)) != string(e.Append(nil)) {
			t.Errorf("%s with spaces: %v", c.in, err)
		}
		e.Seq = 1
		back, err := wire.DecodeEvent(e.Append(nil))
		if err != nil || fieldsOf(&back) != c.want {
			t.Errorf("from the log %s\n says %s, %v\nwants %s", e.Append(nil), fieldsOf(&back), err, c.want)
		}
	}
	e, err := Adopt([]byte(`{"kind":"confirm_required","session":"s","turn_id":"t","event_id":"e"}`))
	if err != nil || e.Session != "s" || e.TurnID != "t" || e.EventID != "e" {
		t.Error(e, err)
	}
}

// A line of another event log becomes an event without its place in that log.
func TestAdoptLogLine(t *testing.T) {
	line := `{"seq":7,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook","kind":"turn_completed","session":"s",` +
		`"turn_id":"t","event_id":"e","wire":{"kind":"turn_completed","agent":"x","n":18446744073709551615},"status":"failed","n":1e999}`
	e, err := Adopt([]byte(line))
	must(t, err)
	want := `{"seq":0,"agent":"bob","kind":"turn_completed","session":"s","turn_id":"t","event_id":"e",` +
		`"wire":{"kind":"turn_completed","agent":"x","n":18446744073709551615},"status":"failed","n":1e999}`
	if diff := cmp.Diff(want, string(e.Append(nil))); diff != "" {
		t.Error(diff)
	}
	if AgentOf(&e) != "x" {
		t.Error(AgentOf(&e))
	}
	if e, err = Adopt([]byte(`{"seq":7,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook","kind":"session_end","reason":"clear"}`)); err != nil || AgentOf(&e) != "bob" || e.Text("reason") != "clear" {
		t.Error(e, err)
	}
	for in, want := range map[string]string{
		`{"seq":"7","at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook","kind":"x"}`:          "seq: must be a whole number",
		`{"seq":7,"at":"2026-05-01T12:00:00Z","team":"main","agent":"../x","source":"hook","kind":"x"}`:           "agent: ",
		`{"seq":7,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook","kind":"X"}`:            "kind: must be a word",
		`{"seq":7,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook","kind":"x","kind":"y"}`: "appears twice",
		`{"seq":7,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook","kind":"x","wire":[]}`:  "wire: must be an object",
	} {
		if _, err := Adopt([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// JSON that is not an event is refused, and so is a malformed event of a known kind.
func TestAdoptErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{"body":"x"}`:                    ErrNotEvent.Error(),
		`{"name":"x"}`:                    ErrNotEvent.Error(),
		`{}`:                              ErrNotEvent.Error(),
		`{"kind":""}`:                     ErrNotEvent.Error(),
		`{"kind":"Deployment"}`:           ErrNotEvent.Error(),
		`{"kind":"TurnIdle","agent":"a"}`: ErrNotEvent.Error(),
		`{"kind":"Turn","turn_id":"t","status":"failed"}`:  ErrNotEvent.Error(),
		`{"kind":7,"turn_id":"t","status":"failed"}`:       ErrNotEvent.Error(),
		`{"kind":null,"turn_id":"t","status":"failed"}`:    ErrNotEvent.Error(),
		`{"update_type":[],"session_id":"s","content":[]}`: ErrNotEvent.Error(),
		`[]`:                               ErrNotEvent.Error(),
		`"turn_idle"`:                      ErrNotEvent.Error(),
		`{"method":"GET","url":"x"}`:       ErrNotEvent.Error(),
		`{"session_id":"s"}`:               ErrNotEvent.Error(),
		`{"session_id":"s","content":"x"}`: "line 1, column 29: content: must be an array",
		`{"jsonrpc":"2.0","id":1,"result":{"session_id":"s","state":"x"}}`: "line 1, column 34: result: state: must be created, active, awaiting_input, completed, cancelled or failed",
		`{"method":"session/prompt","params":{"session_id":"s"}}`:          "line 1, column 37: params: content is missing",
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                             ErrNotEvent.Error(),
		`{"kind":"turn_idle"`:                                              "line 1, column 20: the text ends in the middle",
		`{"kind":"turn_idle"} x`:                                           "line 1, column 22: invalid character 'x' after top-level value",
		"{\"kind\":\"turn_idle\",\"agent\":\"\xff\"":                       "line 1, column 30: invalid UTF-8",

		" \n {\"kind\":\"turn_idle\",\"agent\":5}":                                                     "line 2, column 30: agent: must be a string",
		`{"kind":"turn_idle","agent":5}`:                                                               "line 1, column 29: agent: must be a string",
		`{"kind":"turn_idle","agent":"a","agent":"b"}`:                                                 "line 1, column 33: agent appears twice",
		`{"kind":"turn_idle","kind":"turn_idle"}`:                                                      "line 1, column 21: kind appears twice",
		`{"kind":"turn_completed","turn_id":"t"}`:                                                      "line 1, column 1: status is missing",
		`{"kind":"turn_completed","status":"inProgress"}`:                                              "line 1, column 35: status: must be completed, interrupted or failed",
		`{"kind":"stream_error","agent":"a","session_id":"s","error_summary":"e"}`:                     "line 1, column 1: agent_id is missing",
		`{"kind":"dropped_counters","agent_id":"a","dropped":1.0,"unknown":0}`:                         "line 1, column 53: dropped: must be a whole number from 0 to 18446744073709551615",
		`{"kind":"dropped_counters","agent_id":"a","dropped":18446744073709551616,"unknown":0}`:        "line 1, column 53: dropped: must be a whole number from 0 to 18446744073709551615",
		`{"event_type":"agent_output","stream":"stdout","content":"x"}`:                                "line 1, column 39: stream: must be std_out or std_err",
		`{"event_type":"status_update","message":null}`:                                                "line 1, column 41: message: must be a string",
		`{"event_type":"goal_complete","goal_id":"g"}`:                                                 "line 1, column 41: goal_id: must be a UUID",
		`{"event_type":"status_update","event_type":"status_update","message":""}`:                     "line 1, column 31: event_type appears twice",
		`{"update_type":"tool_call_end","tool_call_id":"c"}`:                                           "line 1, column 1: result is missing",
		`{"update_type":"turn_complete","status":"done"}`:                                              "line 1, column 41: status: must be completed, cancelled, failed or awaiting_input",
		`{"update_type":"message_delta","delta":"x","session_id":5}`:                                   "line 1, column 57: session_id: must be a string",
		`{"sessionUpdate":"tool_call","toolCallId":5}`:                                                 "line 1, column 43: toolCallId: must be a string",
		`{"sessionUpdate":"plan","entries":{}}`:                                                        "line 1, column 35: entries: must be an array",
		`{"sessionId":5,"update":{"sessionUpdate":"plan"}}`:                                            "line 1, column 14: sessionId: must be a string",
		`{"method":"session/request_permission","params":{"options":{}}}`:                              "line 1, column 49: params: options: must be an array",
		`{"method":"turn/started"}`:                                                                    "line 1, column 1: params is missing",
		`{"method":"turn/started","params":{"turn":{"id":5}}}`:                                         "line 1, column 35: params: turn: id: must be a string",
		`{"method":"turn/completed","params":{"turn":{"status":"done"}}}`:                              "line 1, column 37: params: turn: status: must be completed, interrupted, failed or inProgress",
		`{"method":"turn/completed","method":"turn/started","params":{"turn":{"status":"completed"}}}`: "line 1, column 28: method appears twice",
		`{"kind":"state_change","previous":1}`:                                                         "line 1, column 35: previous: must be a string",
		`{"kind":"confirm_required","options":"y"}`:                                                    "line 1, column 38: options: must be an array",
		`{"kind":"exited","code":"0"}`:                                                                 "line 1, column 25: code: must be a whole number",
		`{"kind":"session_start","session":5}`:                                                         "line 1, column 35: session: must be a string",
	} {
		e, err := Adopt([]byte(in))
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", in, err, want)
		}
		if errors.Is(err, ErrNotEvent) != strings.HasPrefix(want, "not an event") {
			t.Errorf("%s: %v is or is not ErrNotEvent", in, err)
		}
		if e.Kind != "" {
			t.Errorf("%s: an event with the error", in)
		}
	}
}

// Adopt never panics. An adopted event can be appended, read back and adopted again unchanged; written in any
// vocabulary, it is adopted as the same kind.
func FuzzAdopt(f *testing.F) {
	for _, seed := range []string{
		turnStarted, acpUpdate, acpAsks, codexStart, codexEnd, statusCall(`{"type":"idle"}`), statusCall(`"active"`),
		`{"kind":"dropped_counters","agent_id":"a","dropped":18446744073709551615,"unknown":0}`, `{"kind":"exited","code":-1}`,
		`{"event_type":"draft_ready","draft_id":"6f1c2a340b7e4c1d9a550123456789ab","summary":"","artifact_count":3}`,
		`{"update_type":"tool_call_end","tool_call_id":"c","result":{"a":1e400}}`, `{"kind":"x","\ud800":"\ud800"}`, `{"kind":"x","kind":"x"}`,
		`{"seq":7,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook","kind":"x","wire":{"kind":"x"},"n":null}`,
		`{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[]}}`, `{"method":"error","params":{}}`, `{"session_id":"s","update_type":"message_delta","delta":""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Adopt(data)
		if errors.Is(err, ErrNotEvent) {
			return
		}
		if located(t, data, err); err != nil {
			return
		}
		e.Seq, e.Team, e.Agent, e.Source = 1, "main", "bob", "cli"
		line := e.Append(nil)
		back, err := wire.DecodeEvent(line)
		if err != nil || string(back.Append(nil)) != string(line) || fieldsOf(&back) != fieldsOf(&e) {
			t.Fatalf("%s: %v", line, err)
		}
		Line(&e)
		if again, err := Adopt(e.Wire); len(e.Wire) > 0 && e.Extra == nil && e.Kind == again.Kind && (err != nil || string(again.Wire) != string(e.Wire)) {
			t.Fatalf("%s: %v", e.Wire, err)
		}
		for _, v := range []Vocabulary{Daemon, Session, ACP} {
			theirs, ok := AsWire(&e, v)
			if !ok {
				continue
			}
			back, err := Adopt(theirs)
			if err != nil || back.Kind != e.Kind {
				t.Fatalf("as %s %s: %v", v, theirs, err)
			}
			back.Seq, back.Team, back.Agent, back.Source = 1, "main", "bob", "cli"
			if twice, ok := AsWire(&back, v); !ok || string(twice) != string(theirs) {
				t.Fatalf("as %s %s\nand then %s", v, theirs, twice)
			}
		}
	})
}

// What Canonical accepts it returns in a form that it accepts unchanged.
func FuzzRecords(f *testing.F) {
	for _, file := range []string{"000-001_session_channel.json", "002_pty_manager.json", "003_acp_session.json", "004_stream_events.json"} {
		for _, v := range vectors[vector](f, file) {
			if v.Text != nil {
				f.Add([]byte(*v.Text))
			}
		}
	}
	f.Add([]byte("0"))
	f.Add([]byte(`{"session_id":"s","metadata":{"a":1,"a":[ "\ud800" ]},"model_preferences":{"temperature":1e-7}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, typ := range types {
			text, err := typ.canonicalOf(data)
			located(t, data, err)
			if err != nil {
				continue
			}
			again, err := typ.canonicalOf(text)
			if err != nil || string(again) != string(text) {
				t.Fatalf("%s: %s, %v", name, text, err)
			}
			if read := goTypes[name]; read != nil {
				v, err := read(name, data)
				if err != nil || !isSameJSON([]byte(marshalled(name, v)), text) {
					t.Fatalf("%s: %s, %v", name, text, err)
				}
			}
		}
	})
}
