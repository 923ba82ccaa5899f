package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
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

func TestSetMeta(t *testing.T) {
	m := &Message{Meta: json.RawMessage(`{"theirs":1e400,"atm":{"old":[2]}}`)}
	m.SetMeta("id", json.RawMessage(`"x"`))
	m.SetMeta("id", json.RawMessage(`"y"`))
	if want := `{"theirs":1e400,"atm":{"old":[2],"id":"y"}}`; string(m.Meta) != want {
		t.Errorf("got %s, want %s", m.Meta, want)
	}
	if m.MetaString("id") != "y" || m.MetaString("old") != "" || m.MetaString("none") != "" {
		t.Error(m.MetaString("id"))
	}
	empty := &Message{}
	if empty.SetMeta("a", []byte("true")); string(empty.Meta) != `{"atm":{"a":true}}` {
		t.Errorf("got %s", empty.Meta)
	}
}

func TestMessageWords(t *testing.T) {
	now := time.Now()
	m := &Message{ID: idA, Body: "\n \n first\nsecond", ExpiresAt: now}
	if m.Title() != "first" || m.Kind() != TypeMessage || m.ThreadID() != idA || m.Expired(now) || !m.Expired(now.Add(1)) {
		t.Error(m.Title(), m.Kind(), m.ThreadID())
	}
	m.Subject, m.Thread = "s", idB
	if m.Title() != "s" || m.ThreadID() != idB {
		t.Error(m.Title(), m.ThreadID())
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
