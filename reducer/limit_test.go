package reducer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire"
)

// maxState is far below what a snapshot may have (1 MiB).
const maxState = 96 << 10

func encode(s *State) ([]byte, error) { return json.Marshal(s) }
func decode(b []byte, s *State) error { return json.Unmarshal(b, s) }

// line makes an event of a JSON object without the fields that a log gives.
func logged(t testing.TB, seq uint64, fields string) *wire.Event {
	t.Helper()
	e, err := wire.DecodeEvent(fmt.Appendf(nil, `{"seq":%d,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook",%s}`, seq, fields))
	if err != nil {
		t.Fatal(err)
	}
	return &e
}

// quote is a text as JSON, as encoding/json writes it.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// nasty are texts that take more room in JSON than they seem to, or are long.
var nasty = []string{
	"", "t1", strings.Repeat("x", 1<<15), strings.Repeat("\x01", 5000), strings.Repeat("<&>", 3000), strings.Repeat("\u2028", 900),
	strings.Repeat("\"\\", 2000), strings.Repeat("日本", 900), strings.Repeat("\x80\xff", 700), "\x00", "turn-1", "null", "../../etc/passwd",
}

// TestBounded fills a state with what is too much of everything.
func TestBounded(t *testing.T) {
	var s State
	seq, most := uint64(0), 0
	fold := func(fields string) {
		seq++
		s.Apply(Input{Event: logged(t, seq, fields)})
		b, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		if most = max(most, len(b)); len(b) > maxState {
			t.Fatalf("%d bytes after %d events: %.200s", len(b), seq, fields)
		}
	}
	for round := range 3 {
		for _, bad := range nasty {
			bad += fmt.Sprint(round) // sessions differ
			q := quote(bad)
			for i := range 40 {
				fold(fmt.Sprintf(`"kind":"turn_idle","session":%s,"event_id":"%d-%d"`, q, seq, i))
				fold(fmt.Sprintf(`"kind":"turn_started","session":%s,"turn_id":%s,"thread_id":%s,"transport":%s`, q, quote(bad+fmt.Sprint(i)), q, q))
			}
			fold(fmt.Sprintf(`"kind":"stream_error","error_summary":%s`, q))
			fold(fmt.Sprintf(`"kind":"turn_completed","session":%s,"status":"failed","error":%s`, q, q))
			fold(fmt.Sprintf(`"kind":"turn_started","session":%s`, q))
			for i := range 4 {
				fold(fmt.Sprintf(`"kind":"confirm_required","session":%s,"id":%s,"tool_call_id":%s,"tool":%s,"prompt":%s,"options":[{"id":"1","label":"<&>"},%s]`,
					q, quote(fmt.Sprint(i)+bad), quote(fmt.Sprint(i)+bad), quote(fmt.Sprint(i)+bad), q, quote(bad[:min(len(bad), 90)])))
			}
		}
	}
	for _, bad := range nasty {
		q := quote(bad)
		fold(`"kind":"state_change","new":"error","detail":` + q)
		fold(`"kind":"session_end","reason":` + q)
		fold(`"kind":"exited","signal":` + q + `,"code":9223372036854775807`)
		fold(`"kind":"spawned","pid":18446744073709551615,"started":` + q)
	}
	t.Logf("at most %d bytes of %d", most, maxState)
	if most < maxState/2 {
		t.Error("the test fills too little:", most)
	}
	if len(s.EventIDs) != maxEventIDs {
		t.Error(len(s.EventIDs))
	}
}

// TestLongIdsStayApart: two ids that begin alike are two.
func TestLongIdsStayApart(t *testing.T) {
	long := strings.Repeat("a", 500)
	for _, id := range []string{long, long + "1", long + "2", "\x01" + long, "short", ""} {
		s := shortID(id)
		if shortID(s) != s || len(s) > maxID {
			t.Errorf("%q", s)
		}
	}
	p := newPlayer()
	for _, l := range []string{"turn_started turn_id=" + long + "1", "turn_idle turn_id=" + long + "2"} {
		if _, err := p.play(l); err != nil {
			t.Fatal(err)
		}
	}
	if turn := p.state.Turn(); turn.Status != TurnBusy || turn.ID != shortID(long+"1") {
		t.Error(turn)
	}
	if _, err := p.play("turn_idle turn_id=" + long + "1"); err != nil {
		t.Fatal(err)
	}
	if p.state.Turn().Status == TurnBusy {
		t.Error("still open")
	}
}

// hostile are lines of a log with values of the wrong kinds.
var hostile = []string{
	`"kind":"turn_started","wire":null`,
	`"kind":"turn_started","wire":[1,2,{"turn_id":"t"}]`,
	`"kind":"turn_started","wire":"turn_started"`,
	`"kind":"turn_started","wire":{"turn_id":7,"thread_id":{},"transport":null}`,
	`"kind":"turn_completed","wire":{"status":{"type":"idle"},"turn":{"id":"t1","status":7}}`,
	`"kind":"turn_completed","status":7`,
	`"kind":"turn_idle","wire":{"turn":[]}`,
	`"kind":"dropped_counters","wire":{"dropped":"3","unknown":-1}`,
	`"kind":"dropped_counters","wire":{"dropped":18446744073709551616,"unknown":1.5}`,
	`"kind":"dropped_counters","wire":{"dropped":18446744073709551615,"unknown":18446744073709551615}`,
	`"kind":"stream_error","wire":{"error_summary":["a"]}`,
	`"kind":"error","wire":{"message":{"a":1},"error":"x"}`,
	`"kind":"waiting_for_input","wire":{"prompt":["?"],"id":{}}`,
	`"kind":"confirm_required","id":-7,"tool":["x"],"options":"none"`,
	`"kind":"confirm_required","id":12345678901234567890123,"options":{"a":[1,2,3]}`,
	`"kind":"confirm_required","options":[[[[[[]]]]]],"prompt":"\ud800"`,
	`"kind":"spawned","pid":"7","started":7`,
	`"kind":"spawned","pid":-1,"started":"9999-12-31T23:59:59-14:00"`,
	`"kind":"spawned","pid":1,"started":"0000-01-01T00:00:00Z"`,
	`"kind":"exited","code":"1","signal":9`,
	`"kind":"exited","code":-9223372036854775808`,
	`"kind":"exited","code":1e3`,
	`"kind":"restarting","attempt":-1`,
	`"kind":"restarting","attempt":18446744073709551615`,
	`"kind":"state_change","new":["idle"]`,
	`"kind":"state_change","new":"IDLE"`,
	`"kind":"state_change","wire":{"new_state":"idle"}`,
	`"kind":"session_start","wire":{"source":7}`,
	`"kind":"session_end","reason":{}`,
	`"kind":"Turn_Started","turn_id":"t9"`,
	`"kind":"TURN_IDLE"`,
	`"kind":" turn_idle"`,
	`"kind":""`,
	`"kind":null`,
	`"kind":"tool_call","wire":{"params":{"update":7},"method":"session/update"}`,
	`"kind":"tool_call_update","wire":{"update":{"sessionUpdate":"tool_call_update","status":7}}`,
	`"kind":"message_read","id":7`,
	`"kind":"injected","id":""`,
	`"kind":"turn_started","session":"","turn_id":"","event_id":""`,
	`"kind":"turn_started","event_id":"same"`,
	`"kind":"turn_started","event_id":"same","turn_id":"x"`,
}

func TestHostileValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s State
		for seq := uint64(1); seq < 40; seq++ {
			s.Apply(Input{Event: logged(t, seq, hostile[rng.IntN(len(hostile))])})
			valid(t, &s)
		}
	}
	// What is not what it must be counts as absent.
	for fields, want := range map[string]string{
		`"kind":"Turn_Started","turn_id":"t9"`:                                                    "unknown: unknown, turn - idle; unknown 1",
		`"kind":"turn_completed","status":7`:                                                      "idle: idle, turn - terminal; last - completed",
		`"kind":"dropped_counters","wire":{"dropped":"3","unknown":-1}`:                           "unknown: unknown, turn - idle",
		`"kind":"turn_started","wire":[1,2,{"turn_id":"t"}]`:                                      "busy: thinking, turn turn-1 busy",
		`"kind":"state_change","new":"IDLE"`:                                                      "unknown: unknown, turn - idle",
		`"kind":"exited","code":-9223372036854775808`:                                             `off: exited "exit -9223372036854775808", turn - idle`,
		`"kind":"confirm_required","id":-7,"tool":["x"],"options":"none"`:                         "blocked: confirming, turn - idle, asks permission as -7",
		`"kind":"turn_completed","wire":{"status":{"type":"idle"},"turn":{"id":"t1","status":7}}`: "idle: idle, turn t1 terminal; last t1 completed",
	} {
		var s State
		s.Apply(Input{Event: logged(t, 1, fields)})
		if got := show(&s); got != want {
			t.Errorf("%s: %s", fields, got)
		}
	}
	// A year that JSON cannot write, a wall clock with a monotonic part, no time.
	var s State
	for i, at := range []time.Time{time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-3, 1, 1, 0, 0, 0, 0, time.UTC), {}, time.Unix(1, 5).Local()} {
		e := logged(t, uint64(i+1), `"kind":"turn_started"`)
		e.At = at
		s.Apply(Input{Event: e, Now: at})
		s.Apply(Input{Event: &wire.Event{Team: "main", Agent: "bob", Kind: "turn_idle", Session: "\xff\xfe"}})
		valid(t, &s)
	}
}

// valid looks whether a state is one that its JSON gives back, and short.
func valid(t testing.TB, s *State) {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > maxState {
		t.Fatalf("%d bytes", len(b))
	}
	var back State
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatalf("%v: %.200s", err, b)
	}
	want := s.Clone()
	want.mail = mail{}
	if !reflect.DeepEqual(want, back) {
		t.Fatal(cmp.Diff(want, back, cmp.AllowUnexported(State{}, mail{})))
	}
	for _, turn := range s.Turns {
		if (turn.Waiting() != nil) != (turn.Word() == WordBlocked) {
			t.Fatal("blocked without a question, or a question of one who is not:", show(s))
		}
	}
	v := s.Evaluate(Evidence{Now: time.Now()})
	if v.Word == "" || v.Presence == "" {
		t.Fatal(v)
	}
}

func TestClip(t *testing.T) {
	for _, s := range nasty {
		for _, most := range []int{0, 1, 5, 80, 4000} {
			c := clip(s, most)
			if len(c) > most || !utf8.ValidString(c) {
				t.Errorf("%d bytes for %d: %q", len(c), most, c)
			}
			if !strings.HasPrefix(strings.ToValidUTF8(s, "\uFFFD"), c) {
				t.Errorf("%q", c)
			}
		}
	}
	if got := clip("日本語", 7); got != "日本" {
		t.Error(got)
	}
}
