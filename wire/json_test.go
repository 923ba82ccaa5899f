package wire

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// What is read with encoding/json, by value, by pointer and in a program's own types, is what was written, whole.
func TestEncodingJSON(t *testing.T) {
	uid := 7
	m := Message{
		ID: idA, From: Address{"alice", "main", ""}, To: []Address{{"bob", "main", "pi"}}, Body: "<b>", SentAt: time.Unix(1e9, 5e6).UTC(),
		Origin:      &Origin{Via: "cli", UID: &uid, Extra: json.RawMessage(`{"theirs":1}`)},
		Attachments: []Attachment{{Name: "x", SHA256: "00", Size: 1, Extra: json.RawMessage(`{"theirs":2}`)}},
		Payload:     json.RawMessage(`{"n":12345678901234567890}`), Extra: json.RawMessage(`{"a":[1.10]}`),
	}
	m.Attachments[0].SHA256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	e := Event{Seq: 18446744073709551615, At: m.SentAt, Agent: "bob", Kind: "x", Wire: json.RawMessage(`{"k":1}`), Extra: json.RawMessage(`{"a":1}`)}
	type own struct {
		Message  Message
		Pointer  *Message
		Messages map[string]Message
		Event    Event
		Events   []Event
		Address  Address
		None     Address
		ByName   map[Address]int
	}
	in := own{m, &m, map[string]Message{"m": m}, e, []Event{e}, m.To[0], Address{}, map[Address]int{m.From: 1}}
	for name, v := range map[string]any{"value": in, "pointer": &in} {
		data, err := json.Marshal(v)
		must(t, err)
		var out own
		if err := json.Unmarshal(data, &out); err != nil || !reflect.DeepEqual(in, out) {
			t.Errorf("by %s: %v\n%+v\n%+v\n%s", name, err, in, out, data)
		}
	}
	for line, v := range map[string]any{
		`{"seq":1,"kind":"x","a":1}`:              Event{Seq: 1, Kind: "x", Extra: json.RawMessage(`{"a":1}`)},
		`{"type":"message","body":"hi","more":0}`: Message{Body: "hi", Extra: json.RawMessage(`{"more":0}`)},
		`"bob@main.pi"`:                           m.To[0],
		`{"via":"cli","more":0}`:                  Origin{Via: "cli", Extra: json.RawMessage(`{"more":0}`)},
	} {
		if data, err := json.Marshal(v); err != nil || string(data) != line {
			t.Errorf("%s, %v, not %s", data, err, line)
		}
	}
	for line, to := range map[string]any{`[1]`: &Event{}, `{"seq":-1}`: &Event{}, `{"hop":"x"}`: &Message{}, `"x y"`: &Address{}, `{"size":"x"}`: &Attachment{}, `7`: &Message{}} {
		if err := json.Unmarshal([]byte(line), to); err == nil {
			t.Errorf("%s is read as %+v", line, to)
		}
	}
}
