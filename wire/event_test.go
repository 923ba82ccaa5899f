package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventKeepsUnknownFields(t *testing.T) {
	line := `{"seq":1,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook","kind":"theirs","id":"` + idA +
		`","n":1e999,"nothing":null,"deep":[{"x":null}]}`
	e, err := DecodeEvent([]byte(line))
	must(t, err)
	if diff := cmp.Diff(line, string(e.Append(nil))); diff != "" {
		t.Error(diff)
	}
	if e.MessageID() != idA || e.Field("n") != "" || e.Field("absent") != "" {
		t.Error(e)
	}
}

func TestDecodeEventErrors(t *testing.T) {
	for line, want := range map[string]string{
		`{"seq":1`:             "line 1, column 9: the text ends in the middle",
		`{}`:                   "line 1, column 1: the event has no seq",
		`{"seq":0}`:            "line 1, column 1: the event has no seq",
		`{"seq":-1}`:           "line 1, column 8: seq: must be a whole number from 0 to 18446744073709551615",
		`{"seq":1.0}`:          "line 1, column 8: seq: must be a whole number from 0 to 18446744073709551615",
		`{"seq":1,"at":"x"}`:   "line 1, column 15: at: must be a time such as 2026-05-01T12:00:00Z",
		`{"seq":1,"agent":""}`: "line 1, column 18: agent: a name may not be empty",
		`[1]`:                  ErrNotObject.Error(),
	} {
		if _, err := DecodeEvent([]byte(line)); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", line, err, want)
		}
	}
}

// With does not write into an array that another event shares.
func TestEventWith(t *testing.T) {
	e := Event{Kind: "k"}.With("a", "1")
	x, y := e.With("b", "2"), e.With("b", "3")
	if x.Field("b") != "2" || y.Field("b") != "3" || e.Field("b") != "" {
		t.Error(x, y, e)
	}
}

// An event's own fields come before those under wire.
func TestBody(t *testing.T) {
	e := Event{Kind: "k", Session: "s", TurnID: "t", Wire: json.RawMessage(`{"kind":"k","session":"theirs","turn_id":"theirs","agent":"x","tool":"wire","n":18446744073709551615,"deep":{"a":{"b":[1]},"null":null},"null":null}`)}.With("tool", "own").With("nothing", nil).With("u", 7)
	for names, want := range map[string]string{"session": "s", "turn_id": "t", "agent": "x", "tool": "own", "absent tool": "own", "n": "", "deep": "", "nothing": ""} {
		if got := e.Text(strings.Fields(names)...); got != want {
			t.Errorf("%s is %q", names, got)
		}
	}
	if n, ok := e.Uint("n"); !ok || n != 1<<64-1 {
		t.Error(n, ok)
	}
	if n, ok := e.Uint("u"); !ok || n != 7 {
		t.Error(n, ok)
	}
	if _, ok := e.Uint("tool"); ok {
		t.Error("a string is a number")
	}
	for _, name := range []string{"null", "nothing", "absent"} {
		if raw := e.Body().Raw(name); raw != nil {
			t.Error(name, string(raw))
		}
	}
	for _, wire := range []string{"", " ", "[]", "{", `{"a"`, "null", "7"} {
		e := Event{Wire: json.RawMessage(wire)}
		if e.Text("a", "turn_id") != "" || e.Body().Raw("a") != nil {
			t.Error(wire)
		}
	}
}

// A field with the name of a member of all events, kind among them, makes an event that can be written.
func TestWithMember(t *testing.T) {
	for _, key := range []string{"kind", "source", "seq", "wire", "at"} {
		e := Event{Kind: "k"}.With(key, "z")
		if data, err := json.Marshal(e); err != nil || !strings.Contains(string(data), `"`+key+`":"z"`) {
			t.Errorf("%s: %s, %v", key, data, err)
		}
	}
}
