package reducer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// aDay is a log as it comes about: turns of an agent with hooks under a runner,
// a daemon's stream, an ACP session, mail.
func aDay(b testing.TB) [][]byte {
	b.Helper()
	var out [][]byte
	add := func(format string, args ...any) {
		n := len(out)
		out = append(out, fmt.Appendf(nil, `{"seq":%d,"at":"2026-05-01T12:%02d:%02d.123456789Z","team":"main","agent":"bob",`+format+"}", append([]any{n + 1, n / 60 % 60, n % 60}, args...)...))
	}
	const session = `"source":"hook","session":"0190163d-8694-739b-aea5-966c26f8ad91",`
	add(`"source":"pty","kind":"spawned","pid":4711,"started":"2026-05-01T12:00:00Z"`)
	add(session + `"kind":"session_start","event_id":"0190163d:start","wire":{"kind":"session_start","source":"startup"}`)
	for i := range 60 {
		turn := fmt.Sprintf("6f1c2a34-0b7e-4c1d-9a55-%012d", i)
		add(session+`"kind":"turn_started","turn_id":"%s","event_id":"%s:start","transport":"hook"`, turn, turn)
		add(`"source":"pty","kind":"state_change","previous":"idle","new":"thinking"`)
		for c := range 6 {
			add(session+`"kind":"tool_call_start","turn_id":"%s","event_id":"%s:%d","tool":"Bash","tool_call_id":"toolu_01ABCDEF%d"`, turn, turn, c, c)
			if c == 3 {
				add(session+`"kind":"confirm_required","turn_id":"%s","tool":"Bash","prompt":"go test ./... -run TestEverything -count=1"`, turn)
			}
			add(session+`"kind":"tool_call_end","turn_id":"%s","event_id":"%s:%d-","tool":"Bash","tool_call_id":"toolu_01ABCDEF%d"`, turn, turn, c, c)
		}
		add(session+`"kind":"turn_completed","turn_id":"%s","event_id":"%s:end","status":"completed","transport":"hook"`, turn, turn)
		add(session+`"kind":"turn_idle","turn_id":"%s","event_id":"%s:idle","transport":"hook"`, turn, turn)
		add(`"source":"cli","kind":"message_read","id":"0190163d-8694-739b-aea5-%012d","batch":"b%d"`, i, i)
		add(`"source":"cli","kind":"turn_started","turn_id":"t%d","wire":{"kind":"turn_started","agent":"bob","thread_id":"th-1","turn_id":"t%d","transport":"app-server"}`, i, i)
		add(`"source":"cli","kind":"stream_error","wire":{"kind":"stream_error","agent_id":"bob","session_id":"th-1","error_summary":"socket closed"}`)
		add(`"source":"cli","kind":"turn_completed","turn_id":"t%d","wire":{"kind":"turn_completed","agent":"bob","thread_id":"th-1","turn_id":"t%d","status":"completed","transport":"cli-json"}`, i, i)
		add(`"source":"cli","kind":"turn_idle","turn_id":"t%d","wire":{"kind":"turn_idle","agent":"bob","turn_id":"t%d","transport":"mcp"}`, i, i)
		add(`"source":"acp","session":"sess_1","turn_id":"prompt-%d","kind":"turn_started","transport":"acp"`, i)
		for c := range 6 {
			add(`"source":"acp","session":"sess_1","kind":"agent_message_chunk","wire":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"the parser is done, and the tests are green (%d)"}}}}`, c)
		}
		add(`"source":"acp","session":"sess_1","kind":"tool_call","wire":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"tool_call","toolCallId":"call_%d","title":"Deliver to lead","kind":"other","status":"pending"}}}`, i)
		add(`"source":"acp","session":"sess_1","kind":"tool_call_update","wire":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_%d","status":"completed","content":[{"type":"content","content":{"type":"text","text":"queued as m-17"}}]}}}`, i)
		add(`"source":"acp","session":"sess_1","turn_id":"prompt-%d","kind":"turn_completed","status":"completed","transport":"acp"`, i)
		add(`"source":"acp","session":"sess_1","turn_id":"prompt-%d","kind":"turn_idle"`, i)
		add(`"source":"cli","session":"s1","turn_id":"v%d","kind":"message_delta","wire":{"session_id":"s1","turn_id":"v%d","update_type":"message_delta","delta":"the parser is done"}`, i, i)
		add(`"source":"cli","session":"s1","turn_id":"v%d","kind":"turn_complete","wire":{"session_id":"s1","turn_id":"v%d","update_type":"turn_complete","status":"completed"}`, i, i)
	}
	return out
}

// plainEvent is a line of a log for encoding/json, which has to make no more of
// it than this.
type plainEvent struct {
	Seq     uint64          `json:"seq"`
	At      time.Time       `json:"at"`
	Team    string          `json:"team"`
	Agent   string          `json:"agent"`
	Source  string          `json:"source"`
	Kind    string          `json:"kind"`
	Session string          `json:"session"`
	TurnID  string          `json:"turn_id"`
	EventID string          `json:"event_id"`
	Wire    json.RawMessage `json:"wire"`
}

func foldLines(b testing.TB, s *State, lines [][]byte) {
	for _, line := range lines {
		e, err := wire.DecodeEvent(line)
		if err != nil {
			b.Fatal(err)
		}
		s.Apply(Input{Now: e.At, Event: &e})
	}
}

// BenchmarkFold folds a log, and decodes the same lines with encoding/json, by
// turns. x-json is how many times as fast the fold is, in the median of the
// rounds; 0.7 is what is wanted.
func BenchmarkFold(b *testing.B) {
	lines := aDay(b)
	b.SetBytes(int64(len(bytes.Join(lines, []byte{'\n'}))))
	var fold, decode []time.Duration
	var ratio []float64
	for b.Loop() {
		begin := time.Now()
		var s State
		foldLines(b, &s, lines)
		between := time.Now()
		for _, line := range lines {
			var e plainEvent
			if err := json.Unmarshal(line, &e); err != nil {
				b.Fatal(err)
			}
		}
		end := time.Now()
		fold, decode = append(fold, between.Sub(begin)), append(decode, end.Sub(between))
		ratio = append(ratio, float64(end.Sub(between))/float64(between.Sub(begin)))
	}
	slices.Sort(fold)
	slices.Sort(decode)
	slices.Sort(ratio)
	b.ReportMetric(ratio[len(ratio)/2], "x-json")
	b.ReportMetric(float64(fold[len(fold)/2])/float64(len(lines)), "fold-ns/line")
	b.ReportMetric(float64(decode[len(decode)/2])/float64(len(lines)), "json-ns/line")
}

// BenchmarkApply is what the reducer itself takes.
func BenchmarkApply(b *testing.B) {
	lines := aDay(b)
	events := make([]wire.Event, len(lines))
	for i, line := range lines {
		var err error
		if events[i], err = wire.DecodeEvent(line); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		var s State
		for i := range events {
			s.Apply(Input{Now: events[i].At, Event: &events[i]})
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*len(lines)), "ns/event")
}

// TestFoldsADay looks whether the benchmark's log is one, and what folding it
// allocates: nothing for an event that says what is known.
func TestFoldsADay(t *testing.T) {
	var s State
	foldLines(t, &s, aDay(t))
	if got, want := show(&s), "idle: idle, turn v59 terminal, session s1, by acp; last v59 completed after 1s; errors 60"; got != want {
		t.Error(got)
	}
	p := newPlayer()
	for _, l := range []string{"session_start session=s1 source=startup", "turn_started session=s1 turn_id=p1", "tool_call_start session=s1 turn_id=p1 tool=Bash"} {
		if _, err := p.play(l); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []string{"message_delta session=s1 turn_id=p1", "tool_call_end session=s1 turn_id=p1 tool=Bash", "turn_started session=s1 turn_id=p1", "message_read id=m1", "plan"} {
		e, err := p.event(l)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() {
			e.Seq++
			p.state.Apply(Input{Now: e.At, Event: e})
		}); n > 0 {
			t.Errorf("%s: %v allocations", l, n)
		}
		p.seq = e.Seq
	}
}
