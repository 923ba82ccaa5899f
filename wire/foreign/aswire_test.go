package foreign

import (
	"slices"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// event adopts an event into bob's log.
func event(t testing.TB, object, source string) *wire.Event {
	t.Helper()
	e, err := Adopt([]byte(object))
	if err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	e.Seq, e.Team, e.Agent, e.Source = 1, "main", "bob", source
	return &e
}

// An event that came in a vocabulary is written as its owner writes it, to the letter, and in no
// other vocabulary.
func TestAsWireVectors(t *testing.T) {
	events := []string{"SessionEvent", "SessionUpdate", "SessionUpdateNotification", "DaemonStreamEvent", "SessionNewParams", "SessionNewResult",
		"SessionLoadResult", "SessionPromptResult", "SessionCancelParams", "RequestPermissionParams", "RequestPermissionResult",
		"ToolExecutionResult", "ServerRequestNotification"}
	for file, of := range map[string]Vocabulary{"000-001_session_channel.json": Session, "003_acp_session.json": ACP, "004_stream_events.json": Daemon} {
		n := 0
		for _, v := range vectors[vector](t, file) {
			if !slices.Contains(events, v.Type) || v.Name == "default" || v.Name == "session_only" { // {}, {"session_id"}
				continue
			}
			n++
			e := event(t, string(indented(t, *v.Text)), "cli")
			for _, as := range []Vocabulary{Daemon, Session, ACP} {
				got, ok := AsWire(e, as)
				if ok != (as == of) || ok && string(got) != *v.Text {
					t.Errorf("%s as %s: %s", *v.Text, as, got)
				}
			}
			if v.Display != nil && Line(e) != *v.Display {
				t.Errorf("shown as %q, not %q", Line(e), *v.Display)
			}
		}
		if n == 0 {
			t.Errorf("%s has no events", file)
		}
	}
}

// Events of hooks, scripts and Codex are translated where the vocabulary has a counterpart.
func TestAsWire(t *testing.T) {
	compose := func(kind string, pairs ...string) *wire.Event {
		e := wire.Event{Kind: kind}
		for i := 0; i < len(pairs); i += 2 {
			switch value := pairs[i+1]; pairs[i] {
			case "session":
				e.Session = value
			case "turn_id":
				e.TurnID = value
			default:
				raw, err := ParseField(kind, pairs[i], value)
				must(t, err)
				e = e.With(pairs[i], raw)
			}
		}
		e = Translate(e)
		e.Seq, e.Team, e.Agent, e.Source = 1, "main", "bob", "hook"
		return &e
	}
	for _, c := range []struct {
		e                    *wire.Event
		daemon, session, acp string
		display              string
	}{
		{e: event(t, `{"kind":"turn_started","n":18446744073709551615}`, "drop"),
			daemon: `{"kind":"turn_started","agent":"bob","thread_id":"","turn_id":"","transport":"drop"}`, display: "TurnStarted(agent=bob, turn_id=, transport=drop)"},
		{e: event(t, `{"kind":"turn_idle","agent":"","turn_id":"","transport":""}`, "drop"),
			daemon: `{"kind":"turn_idle","agent":"","turn_id":"","transport":""}`, display: "TurnIdle(agent=, transport=)"},
		{e: event(t, codexStart, "acp"), daemon: `{"kind":"turn_started","agent":"bob","thread_id":"th-1","turn_id":"tu-1","transport":"app-server"}`,
			display: "TurnStarted(agent=bob, turn_id=tu-1, transport=app-server)"},
		{e: event(t, codexEnd, "acp"), daemon: `{"kind":"turn_completed","agent":"bob","thread_id":"th-1","turn_id":"tu-1","status":"completed","transport":"app-server"}`,
			display: "TurnCompleted(agent=bob, turn_id=tu-1, transport=app-server)"},
		{e: event(t, statusCall(`{"type":"active","activeFlags":["waitingOnUserInput"]}`), "acp"), session: `{"event_type":"waiting_for_input","prompt":""}`, display: "Waiting for input: "},
		{e: event(t, `{"kind":"turn_paused","x":1.0}`, "cli"), daemon: `{"kind":"turn_paused","x":1.0}`, display: "x=1.0"},
		{e: event(t, `{"event_type":"brand_new","stream":"stdout"}`, "cli"), session: `{"event_type":"brand_new","stream":"stdout"}`, display: "stream=stdout"},
		{e: event(t, `{"update_type":"brand_new","n":1e9}`, "cli"), acp: `{"update_type":"brand_new","n":1e9}`, display: "n=1e9"},
		{e: event(t, `{"update_type":"message_delta","turn_id":"t","delta":"\u00e9"}`, "cli"), acp: `{"update_type":"message_delta","turn_id":"t","delta":"\u00e9"}`, display: "é"},
		{e: event(t, acpUpdate, "acp"), acp: acpUpdate, display: "status=pending title=Deliver to lead tool_call_id=call_1 tool=Deliver to lead"},
		{e: event(t, acpAsks, "acp"), acp: acpAsks, display: `prompt=Deliver to lead tool=Deliver to lead tool_call_id=call_1 options=[{"optionId":"once","name":"Send","kind":"allow_once"}] id=1`},
		{e: event(t, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi\u001b[2J"}}`, "acp"),
			acp: `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi\u001b[2J"}}`, display: "hi\x1b[2J"},
		{e: event(t, `{"kind":"confirm_required","tool":"Bash","prompt":"rm?"}`, "cli"), display: "tool=Bash prompt=rm?"},
		{e: compose("turn_started", "turn_id", "t1", "session", "s1"), daemon: `{"kind":"turn_started","agent":"bob","thread_id":"s1","turn_id":"t1","transport":"hook"}`,
			display: "TurnStarted(agent=bob, turn_id=t1, transport=hook)"},
		{e: compose("turn_completed", "status", "failed", "thread_id", "th", "transport", "cli-json"), daemon: `{"kind":"turn_completed","agent":"bob","thread_id":"th","turn_id":"","status":"failed","transport":"cli-json"}`,
			display: "TurnCompleted(agent=bob, turn_id=, transport=cli-json)"},
		{e: compose("turn_started", "agent", "x", "turn_id", "t1"), daemon: `{"kind":"turn_started","agent":"x","thread_id":"","turn_id":"t1","transport":"hook"}`,
			display: "TurnStarted(agent=x, turn_id=t1, transport=hook)"},
		{e: compose("stream_error", "summary", "boom", "session", "s"), daemon: `{"kind":"stream_error","agent_id":"bob","session_id":"s","error_summary":"boom"}`,
			display: "StreamError(agent_id=bob, session_id=s, error_summary=boom)"},
		{e: compose("stream_error", "error_summary", "boom", "session_id", "s"), daemon: `{"kind":"stream_error","agent_id":"bob","session_id":"s","error_summary":"boom"}`,
			display: "StreamError(agent_id=bob, session_id=s, error_summary=boom)"},
		{e: compose("dropped_counters", "dropped", "18446744073709551615"), daemon: `{"kind":"dropped_counters","agent_id":"bob","dropped":18446744073709551615,"unknown":0}`,
			display: "DroppedCounters(agent_id=bob, dropped=18446744073709551615, unknown=0)"},
		{e: compose("dropped_counters", "agent_id", "proxy:all", "dropped", "3", "unknown", "2"), daemon: `{"kind":"dropped_counters","agent_id":"proxy:all","dropped":3,"unknown":2}`,
			display: "DroppedCounters(agent_id=proxy:all, dropped=3, unknown=2)"},
		{e: compose("status_update", "message", "hi"), session: `{"event_type":"status_update","message":"hi"}`, display: "Status: hi"},
		{e: compose("agent_output", "content", "hi", "agent", "x"), display: "content=hi"},
		{e: compose("status_update"), display: ""}, {e: compose("message_delta", "turn_id", "t"), display: ""},
		{e: event(t, `{"kind":"session_end","reason":"x"}`, "cli"), display: "reason=x"},
		{e: compose("state_change", "new", "thinking"), display: "→ thinking"},
		{e: compose("message_delta", "delta", "hi"), acp: `{"update_type":"message_delta","delta":"hi"}`, display: "hi"},
		{e: compose("message_delta", "delta", "hi", "session", "s", "turn_id", "t"), acp: `{"session_id":"s","turn_id":"t","update_type":"message_delta","delta":"hi"}`, display: "hi"},
		{e: compose("state_change", "previous", "idle", "new", "tool_running", "detail", "make"), display: "idle → tool_running (make)"},
		{e: compose("exited", "code", "-1"), display: "code -1"},
		{e: compose("note", "id", idA, "batch", "b"), display: "id=" + idA + " batch=b"},
		{e: compose("deploy", "to", "prod", "n", "5", "list", `[1, {"a":"b"}]`), display: `to=prod n=5 list=[1,{"a":"b"}]`},
	} {
		for v, want := range map[Vocabulary]string{Daemon: c.daemon, Session: c.session, ACP: c.acp} {
			got, ok := AsWire(c.e, v)
			if string(got) != want && ok || ok != (want != "") {
				t.Errorf("%s as %s\n gave %s, %v\nwant %s", c.e.Append(nil), v, got, ok, want)
			}
		}
		if got := Line(c.e); got != c.display {
			t.Errorf("%s is shown as %q, not %q", c.e.Append(nil), got, c.display)
		}
	}
}
