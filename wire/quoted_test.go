package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzUnquote: what a string says is as encoding/json has it.
func FuzzUnquote(f *testing.F) {
	for _, seed := range []string{
		`""`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\ud83d\n"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx"`,
		`"\/\b\f\n\r\t\\\"\u0000"`, `"a\u20acb\uFFFF"`, `"aé\n"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want string
		raw := json.RawMessage(strings.Trim(string(data), " \t\r\n"))
		if !utf8.Valid(raw) || json.Unmarshal(raw, &want) != nil || raw[0] != '"' {
			return
		}
		if got, err := decodeString(raw); got != want || err != nil {
			t.Fatalf("%q: %q, %v; encoding/json has %q", data, got, err, want)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	m := &Message{ID: idA, From: Address{"alice", "main"}, To: []Address{{"bob", "main"}}, Body: strings.Repeat("All work and no play.\n", 40)}
	uid := 0
	m.Origin = &Origin{Via: "cli", UID: &uid}
	data, err := m.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
