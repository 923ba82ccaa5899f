package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	idA = "01900000-0000-7000-8000-00000000000a"
	idB = "01900000-0000-7000-8000-00000000000b"
)

// everything has each field of a message and unknown ones at every depth.
const everything = `{"id":"` + idA + `","type":"notice","from":"alice@main","to":["bob@main","carol@other"],` +
	`"thread":"` + idB + `","in_reply_to":"` + idB + `","subject":"s\u2028","body":"b\n\ud83d\ude00","priority":"urgent",` +
	`"requires_ack":true,"reply_wanted":"no","sent_at":"2026-05-01T12:00:00.123456789Z","expires_at":"2026-05-02T12:00:00Z",` +
	`"due_at":"2026-05-03T12:00:00Z","supersedes":"` + idB + `","hop":3,` +
	`"origin":{"via":"cli","uid":0,"run":"r","theirs":{"n":18446744073709551615}},` +
	`"attachments":[{"name":"n","sha256":"` + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" +
	`","size":1,"media_type":"text/plain","theirs":[1e400,-0.10]}],` +
	`"payload":{"deep":{"er":[123456789012345678901234567890]}},"meta":{"atm":{"x":1},"y":null},` +
	`"theirs":{"a":[{"b":1.000000000000000000001}]},"nothing":null}`

func TestDecodeKeepsEverything(t *testing.T) {
	m, err := Decode([]byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	// In the order in which we write; strings with as little escaped as can be.
	want := strings.NewReplacer(`\u2028`, "\u2028", `\ud83d\ude00`, "😀").Replace(everything) + "\n"
	if diff := cmp.Diff(want, string(enc)); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeErrors(t *testing.T) {
	object := func(fields string) string {
		return `{"id":"` + idA + `","from":"alice@main",` + "\n  " + fields + "\n}"
	}
	for _, c := range []struct{ text, want string }{
		{``, "line 1, column 1: the text ends in the middle"},
		{`  `, "line 1, column 3: the text ends in the middle"},
		{`[]`, ErrNotObject.Error()},
		{`7`, ErrNotObject.Error()},
		{"{\n\"id\":", "line 2, column 6: the text ends in the middle"},
		{"{\"a\":1}\nx", "line 2, column 1: something follows the object"},
		{`{"a":1,}`, "line 1, column 8: invalid character '}' looking for beginning of object key string"},
		{"{\"a\":\"\xff\"}", "line 1, column 7: not UTF-8"},
		{`{}`, "line 1, column 1: the message has no id"},
		{`{"id":"` + idA + `"}`, "line 1, column 1: the message has no sender"},
		{`{"ID":"` + idA + `","from":"a@b"}`, "line 1, column 1: the message has no id"},
		{object(`"body":5`), "line 2, column 10: body: must be a string"},
		{object(`"body" : "a\u0000"`), "line 2, column 12: body: has a NUL"},
		{object(`"requires_ack":"yes"`), "line 2, column 18: requires_ack: must be true or false"},
		{object(`"hop":1.5`), "line 2, column 9: hop: must be a whole number"},
		{object(`"hop":-1`), "line 2, column 9: hop: is negative"},
		{object(`"priority":"high"`), "line 2, column 14: priority: must be normal or urgent"},
		{object(`"reply_wanted":"maybe"`), "line 2, column 18: reply_wanted: must be yes or no"},
		{object(`"sent_at":"yesterday"`), "line 2, column 13: sent_at: must be a time such as 2026-05-01T12:00:00Z"},
		{object(`"sent_at":"9999-12-31T23:59:59-01:00"`), "line 2, column 13: sent_at: must be within the years 0 to 9999"},
		{object(`"thread":"x"`), `line 2, column 12: thread: "x" is not a UUIDv7`},
		{object(`"to":["../etc"]`), `line 2, column 8: to: "../etc" is not a name: a-z, 0-9, _ and -, and first a letter or digit`},
		{object(`"from":"all@main"`), `line 2, column 10: from: "all" is reserved`},
		{object(`"payload":[]`), "line 2, column 13: payload: must be an object"},
		{object(`"origin":{"uid":"0"}`), "line 2, column 12: origin: uid must be a whole number"},
		{object(`"attachments":[{}]`), "line 2, column 17: attachments: an attachment has no sha256"},
		{object(`"attachments":[{"sha256":"../../x"}]`), "line 2, column 17: attachments: sha256 must be 64 hex digits"},
	} {
		_, err := Decode([]byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// A null is a field of ours that is absent, also in the objects below.
func TestDecodeNull(t *testing.T) {
	fields := []string{`"id":"` + idA + `"`, `"from":"alice@main"`}
	for _, k := range messageFields[1:] {
		if k != "from" {
			fields = append(fields, fmt.Sprintf("%q:null", k))
		}
	}
	fields = append(fields, `"theirs":null`)
	m, err := Decode([]byte("{" + strings.Join(fields, ",") + "}"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(m.Append(nil)), `{"id":"`+idA+`","type":"message","from":"alice@main","body":"","theirs":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := Decode([]byte(`{"id":"` + idA + `","from":"a@b","origin":{"via":null,"uid":null,"run":null}}`)); err != nil {
		t.Error(err)
	}
}

func TestObjectRepeatedKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"first":1`)
	for i := range 200 {
		fmt.Fprintf(&b, `,"k%d":%d`, i%100, i)
	}
	b.WriteString(`,"first":2}`)
	fields, err := Object([]byte(b.String()))
	if err != nil || len(fields) != 101 || fields[0].Key != "first" || string(fields[0].Raw) != "2" {
		t.Fatal(len(fields), err)
	}
	for i, f := range fields[1:] {
		if f.Key != fmt.Sprintf("k%d", i) || string(f.Raw) != fmt.Sprint(100+i) {
			t.Fatalf("%s is %s", f.Key, f.Raw)
		}
	}
}

// An object of a quarter of a million keys takes no minutes.
func TestObjectOfManyKeys(t *testing.T) {
	t.Parallel()
	b := []byte{'{'}
	for i := 0; len(b) < MaxFile/2; i++ {
		b = fmt.Appendf(b, `"%x":1,`, i)
	}
	b = append(b, `"z":1}`...)
	begin := time.Now()
	if _, err := Object(b); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// FuzzDecode: decoding never panics, loses nothing that it does not know, and
// says where an error is.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		everything, `{}`, `[]`, `null`, ``, `{"id":"` + idA + `","from":"alice@main"}`, "{\"body\":\"\xc3\"}",
		`{"to":"bob","from":"drop"}`, `{"n":1e999,"n":2}`, `{"a":{"a":{"a":null}}}`, `{"sent_at":"0000-01-01T00:00:00+23:59"}`,
		`{"body":"\ud800"}`, `{"meta":{"atm":5}}`, "{ \"a\" :\r\n\t[ 1 ,\n2 ] }", `{"a":1}{"b":2}`, "\ufeff{}", `{"":"","\u0000":0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := Object(data)
		located(t, data, err)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatal("taken for JSON, which it is not")
		}
		m, err := FromFields(data, fields, "main")
		located(t, data, err)
		if _, err := Decode(data); err != nil {
			located(t, data, err)
		}
		if err != nil {
			return
		}
		enc := m.Append(nil)
		if bytes.IndexByte(enc, '\n') >= 0 {
			t.Fatalf("more than one line: %q", enc)
		}
		again, err := Object(enc)
		if err != nil {
			t.Fatalf("%s: %v", enc, err)
		}
		kept(t, fields, again, messageFields)
		for _, field := range fields {
			if string(field.Raw) == "null" {
				continue
			}
			switch field.Key {
			case "payload", "meta":
				kept(t, []Field{field}, again, nil)
			case "origin":
				before, _ := Object(field.Raw)
				after, _ := Object(value(again, "origin"))
				kept(t, before, after, []string{"via", "uid", "run"})
			case "attachments":
				var before, after []json.RawMessage
				json.Unmarshal(field.Raw, &before)
				json.Unmarshal(value(again, "attachments"), &after)
				if len(before) != len(after) {
					t.Fatalf("%d attachments of %d", len(after), len(before))
				}
				for i := range before {
					x, _ := Object(before[i])
					y, _ := Object(after[i])
					kept(t, x, y, []string{"name", "sha256", "size", "media_type"})
				}
			}
		}
		m2, err := FromFields(enc, again, "main")
		if err != nil {
			t.Fatalf("%s: %v", enc, err)
		}
		if enc2 := m2.Append(nil); !bytes.Equal(enc, enc2) {
			t.Fatalf("%s\nbecame\n%s", enc, enc2)
		}
	})
}

// located fails unless an error of the decoder points into the text.
func located(t *testing.T, data []byte, err error) {
	t.Helper()
	if err == nil || errors.Is(err, ErrNotObject) {
		return
	}
	var de *DecodeError
	if !errors.As(err, &de) {
		t.Fatalf("no place: %v", err)
	}
	lines := bytes.Split(data, []byte{'\n'})
	if de.Line < 1 || de.Line > len(lines) || de.Column < 1 || de.Column > len(lines[de.Line-1])+1 {
		t.Fatalf("%v, in a text of %d lines", de, len(lines))
	}
}

// kept fails unless every field but the known ones is in both, to the digit.
func kept(t *testing.T, before, after []Field, known []string) {
	t.Helper()
next:
	for _, f := range before {
		for _, k := range known {
			if f.Key == k {
				continue next
			}
		}
		if x, y := compact(t, f.Raw), compact(t, value(after, f.Key)); x != y {
			t.Fatalf("%q was %s and became %s", f.Key, x, y)
		}
	}
}

func value(fields []Field, key string) json.RawMessage {
	for _, f := range fields {
		if f.Key == key {
			return f.Raw
		}
	}
	return json.RawMessage(`"absent"`)
}

func compact(t *testing.T, raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return b.String()
}
