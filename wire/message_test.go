package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEncodeLimits(t *testing.T) {
	m := &Message{ID: idA, From: Address{"alice", "main", ""}, Body: strings.Repeat("x", MaxBody)}
	if _, err := m.Encode(); err != nil {
		t.Error(err)
	}
	m.Body += "x"
	if _, err := m.Encode(); err == nil {
		t.Error("a body over the limit is encoded")
	}
	m.Body = strings.Repeat("\x01", MaxBody) // six bytes each
	if _, err := m.Encode(); err == nil {
		t.Error("a file over the limit is encoded")
	}
}

// Marshal escapes only what JSON requires.
func TestMarshalText(t *testing.T) {
	for in, want := range map[string]string{
		"":              `""`,
		"a\"\\\n\r\t/":  `"a\"\\\n\r\t/"`,
		"\b\f\x00\x1b":  `"\b\f\u0000\u001b"`,
		"é😀\u2028\x7f<": "\"é😀\u2028\x7f<\"",
		"a\xffb\xc3":    "\"a\ufffdb\ufffd\"",
	} {
		got, err := Marshal(in)
		if string(got) != want || err != nil || !json.Valid(got) {
			t.Errorf("%q: got %s, %v, want %s", in, got, err, want)
		}
	}
}
