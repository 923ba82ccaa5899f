package reducer

import (
	"fmt"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// aDay is a log as it comes about: turns of an agent with hooks under a runner,
// a daemon's stream, an ACP session, mail.
func aDay(t testing.TB) (events []wire.Event) {
	t.Helper()
	add := func(format string, args ...any) {
		n := len(events)
		line := fmt.Sprintf(`{"seq":%d,"at":"2026-05-01T12:%02d:%02d.123456789Z","team":"main","agent":"bob",`+format+"}", append([]any{n + 1, n / 60 % 60, n % 60}, args...)...)
		e, err := wire.DecodeEvent([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	const hook = `"source":"hook","session":"0190163d-8694-739b-aea5-966c26f8ad91",`
	add(`"source":"pty","kind":"spawned","pid":4711,"started":"2026-05-01T12:00:00Z"`)
	add(hook + `"kind":"session_start","event_id":"0190163d:start","wire":{"kind":"session_start","source":"startup"}`)
	for i := range 60 {
		turn := fmt.Sprintf("6f1c2a34-0b7e-4c1d-9a55-%012d", i)
		add(hook+`"kind":"turn_started","turn_id":"%s","event_id":"%s:start","transport":"hook"`, turn, turn)
		add(`"source":"pty","kind":"state_change","previous":"idle","new":"thinking"`)
		for c := range 6 {
			add(hook+`"kind":"tool_call_start","turn_id":"%s","event_id":"%s:%d","tool":"Bash","tool_call_id":"toolu_01ABCDEF%d"`, turn, turn, c, c)
			if c == 3 {
				add(hook+`"kind":"confirm_required","turn_id":"%s","tool":"Bash","prompt":"go test ./... -run TestEverything -count=1"`, turn)
			}
			add(hook+`"kind":"tool_call_end","turn_id":"%s","event_id":"%s:%d-","tool":"Bash","tool_call_id":"toolu_01ABCDEF%d"`, turn, turn, c, c)
		}
		add(hook+`"kind":"turn_completed","turn_id":"%s","event_id":"%s:end","status":"completed","transport":"hook"`, turn, turn)
		add(hook+`"kind":"turn_idle","turn_id":"%s","event_id":"%s:idle","transport":"hook"`, turn, turn)
		add(`"source":"cli","kind":"message_read","id":"0190163d-8694-739b-aea5-%012d","batch":"b%d"`, i, i)
		add(`"source":"cli","kind":"turn_started","turn_id":"t%d","wire":{"kind":"turn_started","agent":"bob","thread_id":"th-1","turn_id":"t%d","transport":"app-server"}`, i, i)
		add(`"source":"cli","kind":"stream_error","wire":{"kind":"stream_error","agent_id":"bob","session_id":"th-1","error_summary":"socket closed"}`)
		add(`"source":"cli","kind":"turn_completed","turn_id":"t%d","wire":{"kind":"turn_completed","agent":"bob","thread_id":"th-1","turn_id":"t%d","status":"completed","transport":"cli-json"}`, i, i)
		for c := range 6 {
			add(`"source":"acp","session":"sess_1","kind":"agent_message_chunk","wire":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"the parser is done, and the tests are green (%d)"}}}}`, c)
		}
		add(`"source":"acp","session":"sess_1","kind":"tool_call","wire":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"tool_call","toolCallId":"call_%d","title":"Deliver to lead","kind":"other","status":"pending"}}}`, i)
		add(`"source":"acp","session":"sess_1","turn_id":"prompt-%d","kind":"turn_completed","status":"completed","transport":"acp"`, i)
	}
	return events
}

func foldAll(s *State, events []wire.Event) {
	for i := range events {
		s.Apply(Input{Now: events[i].At, Event: &events[i]})
	}
}

// TestFoldsADay looks whether the benchmark's log is one.
func TestFoldsADay(t *testing.T) {
	var s State
	foldAll(&s, aDay(t))
	want := "idle: idle, turn prompt-59 terminal, session sess_1, by acp; last prompt-59 completed after 7s; errors 60"
	if got := show(&s); got != want {
		t.Error(got)
	}
}

// BenchmarkFold folds the events of a log.
func BenchmarkFold(b *testing.B) {
	events := aDay(b)
	b.ReportAllocs()
	for b.Loop() {
		var s State
		foldAll(&s, events)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*len(events)), "ns/event")
}
