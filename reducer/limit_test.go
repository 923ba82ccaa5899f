package reducer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/wire"
)

// maxState is far below what a snapshot may have (1 MiB).
const maxState = 256 << 10

// line returns a line of a log with these fields.
func line(seq int, fields string) []byte {
	return fmt.Appendf(nil, `{"seq":%d,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook",%s}`, seq, fields)
}

func logged(t testing.TB, seq uint64, fields string) *wire.Event {
	t.Helper()
	e, err := wire.DecodeEvent(line(int(seq), fields))
	if err != nil {
		t.Fatal(err)
	}
	return &e
}

// quote returns a text as encoding/json writes it.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// nasty are texts that are long, or longer in JSON than they look.
var nasty = []string{
	"", "t1", strings.Repeat("x", 1<<15), strings.Repeat("\x01", 5000), strings.Repeat("<&>", 3000), strings.Repeat("\u2028", 900),
	strings.Repeat("\"\\", 2000), strings.Repeat("日本", 900), strings.Repeat("\x80\xff", 700), "\x00", "turn-1", "null", "../../etc/passwd",
}

// A State stays small, however much of everything it gets.
func TestBounded(t *testing.T) {
	var s State
	seq := uint64(0)
	fold := func(fields string) {
		seq++
		s.Apply(logged(t, seq, fields))
	}
	for _, bad := range nasty {
		q := quote(bad)
		for i := range 40 {
			fold(fmt.Sprintf(`"kind":"turn_idle","session":%s,"event_id":"%d-%d"`, q, seq, i))
			fold(fmt.Sprintf(`"kind":"turn_started","session":%s,"turn_id":%s,"thread_id":%s,"transport":%s`, q, quote(bad+fmt.Sprint(i)), q, q))
		}
		fold(fmt.Sprintf(`"kind":"turn_completed","session":%s,"status":"failed","error":%s`, q, q))
		for i := range 4 {
			id := quote(fmt.Sprint(i) + bad)
			fold(fmt.Sprintf(`"kind":"confirm_required","session":%s,"id":%s,"tool_call_id":%s,"tool":%s,"prompt":%s,"options":[{"id":"1","label":%s}]`, q, id, id, id, q, q))
		}
		fold(fmt.Sprintf(`"kind":"stream_error","error_summary":%s`, q))
		for range 40 {
			fold(fmt.Sprintf(`"kind":"draft_ready","draft_id":"%s","summary":%s,"interactive_session":%s`, wire.NewID(), q, q))
			fold(fmt.Sprintf(`"kind":"goal_complete","goal_id":"%s","interactive_session":%s`, wire.NewID(), q))
		}
		if b, err := json.Marshal(&s); err != nil || len(b) > maxState {
			t.Fatalf("%d bytes after %d events, %v: %.200s", len(b), seq, err, bad)
		}
		fold(fmt.Sprintf(`"kind":"session_end","reason":%s`, q))
	}
}

// hostile are lines of a log with values of the wrong types.
var hostile = []string{
	`"kind":"turn_started","wire":null`,
	`"kind":"turn_started","wire":[1,2,{"turn_id":"t"}]`,
	`"kind":"turn_started","wire":{"turn_id":7,"thread_id":{},"transport":null}`,
	`"kind":"turn_started","event_id":"same"`,
	`"kind":"turn_completed","wire":{"status":{"type":"idle"},"turn":{"id":"t1","status":7}}`,
	`"kind":"dropped_counters","wire":{"dropped":18446744073709551615,"unknown":18446744073709551615}`,
	`"kind":"error","wire":{"message":{"a":1},"error":"x"}`,
	`"kind":"waiting_for_input","wire":{"prompt":["?"],"id":{}}`,
	`"kind":"confirm_required","id":12345678901234567890123,"options":{"a":[1,2,3]}`,
	`"kind":"confirm_required","options":[[[[[[]]]]]],"prompt":"\ud800"`,
	`"kind":"spawned","pid":-1,"started":"9999-12-31T23:59:59-14:00"`,
	`"kind":"spawned","pid":-1,"started":"0000-01-01T00:00:00+14:00"`,
	`"kind":"exited","code":-9223372036854775808,"signal":9`,
	`"kind":"restarting","attempt":18446744073709551615`,
	`"kind":"state_change","new":["idle"]`,
	`"kind":"session_end","reason":{}`,
	`"kind":null`,
	`"kind":"tool_call","wire":{"params":{"update":7},"method":"session/update"}`,
	`"kind":"message_read","id":7`,
}

// A value of the wrong type counts as absent, and a State survives its JSON.
func TestHostileValues(t *testing.T) {
	testround.Check(t, 100, func(t *rapid.T) {
		var s State
		for i, fields := range rapid.SliceOfN(rapid.SampledFrom(hostile), 0, 40).Draw(t, "lines") {
			e, err := wire.DecodeEvent(line(i+1, fields))
			if err != nil {
				t.Fatal(err)
			}
			s.Apply(&e)
			valid(t, &s)
		}
	})
	for fields, want := range map[string]string{
		`"kind":"Turn_Started","turn_id":"t9"`:                          "unknown: unknown, turn - idle; unknown 1",
		`"kind":"turn_completed","status":7`:                            "idle: idle, turn - terminal; last - completed",
		`"kind":"dropped_counters","wire":{"dropped":"3","unknown":-1}`: "unknown: unknown, turn - idle",
		`"kind":"state_change","new":"IDLE"`:                            "unknown: unknown, turn - idle",
		`"kind":"confirm_required","id":[-7],"tool":["x"]`:              "blocked: confirming, turn - idle, asks permission",
	} {
		var s State
		s.Apply(logged(t, 1, fields))
		if got := show(&s); got != want {
			t.Errorf("%s: %s", fields, got)
		}
	}
}
