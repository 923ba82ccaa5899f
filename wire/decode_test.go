package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	idA = "01900000-0000-7000-8000-00000000000a"
	idB = "01900000-0000-7000-8000-00000000000b"
)

// everything has every field of a message, and unknown ones at every depth.
const everything = `{"id":"` + idA + `","type":"notice","from":"alice@main","to":["bob@main","carol@other"],` +
	`"thread":"` + idB + `","in_reply_to":"` + idB + `","subject":"s\u2028","body":"b\n\ud83d\ude00","priority":"urgent",` +
	`"requires_ack":true,"reply_wanted":"no","sent_at":"2026-05-01T12:00:00.123456789Z","expires_at":"2026-05-02T12:00:00Z",` +
	`"due_at":"2026-05-03T12:00:00Z","supersedes":"` + idB + `","hop":3,` +
	`"origin":{"via":"cli","uid":0,"run":"r","theirs":{"n":18446744073709551615}},` +
	`"attachments":[{"name":"n","sha256":"` + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" +
	`","size":1,"media_type":"text/plain","theirs":[1e400,-0.10]}],` +
	`"payload":{"deep":{"er":[123456789012345678901234567890]}},"meta":{"atm":{"x":1},"y":null},` +
	`"theirs":{"a":[{"b":1.000000000000000000001}]},"nothing":null}`

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDecodeKeepsEverything(t *testing.T) {
	m, err := Decode([]byte(everything))
	must(t, err)
	enc, err := m.Encode()
	must(t, err)
	// In the order of the fields, with as little escaped as possible.
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
		{"{\"a\":1}\nx", "line 2, column 1: invalid character 'x' after top-level value"},
		{`{"a":1,}`, "line 1, column 8: invalid character '}' at start of string (expecting '\"')"},
		{"{\"a\":\"\xff\"}", "line 1, column 7: invalid UTF-8"},
		{`{}`, "line 1, column 1: the message has no id"},
		{`{"id":"` + idA + `"}`, "line 1, column 1: the message has no sender"},
		{`{"ID":"` + idA + `","from":"a@b"}`, "line 1, column 1: the message has no id"},
		{object(`"body":5`), "line 2, column 10: body: must be a string"},
		{object(`"body" : "a\u0000"`), "line 2, column 12: body: must be a text without NUL of at most 1 MiB"},
		{object(`"requires_ack":"yes"`), "line 2, column 18: requires_ack: must be true or false"},
		{object(`"hop":1.5`), "line 2, column 9: hop: must be a whole number"},
		{object(`"hop":-1`), "line 2, column 9: hop: must be a whole number from 0 to 4294967295"},
		{object(`"hop":"1"`), "line 2, column 9: hop: must be a whole number"},
		{object(`"hop":1e10`), "line 2, column 9: hop: must be a whole number"},
		{object(`"priority":"high"`), "line 2, column 14: priority: must be normal or urgent"},
		{object(`"reply_wanted":"maybe"`), "line 2, column 18: reply_wanted: must be yes or no"},
		{object(`"sent_at":"yesterday"`), "line 2, column 13: sent_at: must be a time such as 2026-05-01T12:00:00Z"},
		{object(`"sent_at":"9999-12-31T23:59:59-01:00"`), "line 2, column 13: sent_at: must be within the years 0 to 9999"},
		{object(`"thread":"x"`), `line 2, column 12: thread: "x" is not a UUIDv7`},
		{object(`"to":["../etc"]`), `line 2, column 8: to: "../etc" is not a name: a-z, 0-9, _ and -, starting with a letter or digit`},
		{object(`"from":"all@main"`), "line 2, column 3: from appears twice"},
		{object(`"payload":[]`), "line 2, column 13: payload: must be an object"},
		{object(`"origin":{"uid":"0"}`), "line 2, column 12: origin: uid: must be a whole number"},
		{object(`"attachments":[{}]`), "line 2, column 17: attachments: sha256 is missing"},
		{object(`"attachments":[{"sha256":"../../x"}]`), "line 2, column 17: attachments: sha256: must be 64 hex digits"},
	} {
		_, err := Decode([]byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// What a message keeps as JSON has no white space, whoever wrote the file.
func TestDecodeWhiteSpace(t *testing.T) {
	m, err := Decode([]byte("{\n \"id\": \"" + idA + "\", \"from\": \"a@b\",\n \"payload\": {\"a\": [ 1 ]},\n \"meta\": {\n},\n \"x\": [\n]\n}\n"))
	must(t, err)
	if got, want := fmt.Sprintf("%s %s %s", m.Payload, m.Meta, m.Extra), `{"a":[1]} {} {"x":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A known field that is null counts as absent, also in nested objects.
func TestDecodeNull(t *testing.T) {
	fields := []string{`"id":"` + idA + `"`, `"from":"alice@main"`}
	for _, k := range messageFields() {
		if k != "id" && k != "from" {
			fields = append(fields, fmt.Sprintf("%q:null", k))
		}
	}
	fields = append(fields, `"theirs":null`)
	m, err := Decode([]byte("{" + strings.Join(fields, ",") + "}"))
	must(t, err)
	if got, want := encoded(t, m), `{"id":"`+idA+`","type":"message","from":"alice@main","body":"","theirs":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := Decode([]byte(`{"id":"` + idA + `","from":"a@b","origin":{"via":null,"uid":null,"run":null}}`)); err != nil {
		t.Error(err)
	}
}

// encoded returns a message as JSON.
func encoded(t testing.TB, m *Message) string {
	t.Helper()
	b, err := m.MarshalJSON()
	must(t, err)
	return string(b)
}

// A draft may lack anything, and ignored members may be anything.
func TestDecodeDraft(t *testing.T) {
	for in, want := range map[string]string{
		`{"body":"x"}`:                                           `{"type":"message","body":"x"}`,
		`{"to":"bob","from":"carol","body":"x"}`:                 `{"type":"message","from":"carol@main","to":["bob@main"],"body":"x"}`,
		`{"to":["bob","eve@other"],"subject":""}`:                `{"type":"message","to":["bob@main","eve@other"],"body":""}`,
		`{"id":"` + idA + `","thread":"` + idB + `","body":"x"}`: `{"type":"message","thread":"` + idB + `","body":"x"}`,
		`{"id":"JIRA-7","body":"x","meta":{"a":1}}`:              `{"type":"message","body":"x","meta":{"a":1}}`,
		`{"id":null,"body":"x"}`:                                 `{"type":"message","body":"x"}`,
		`{"id":5,"body":"x"}`:                                    `{"type":"message","body":"x"}`,
		`{"to":null}`:                                            `{"type":"message","body":""}`,
		`{"body":"x","thread":"JIRA-7"}`:                         `line 1, column 22: thread: "JIRA-7" is not a UUIDv7`,
		"\n {\"body\":\"x\",\"id\":[\n],\"hop\":-1}":             "line 3, column 9: hop: must be a whole number from 0 to 4294967295",
		`{"to":["bob",5],"body":"x"}`:                            "line 1, column 7: to: must be a string",
		`{"id":"x","type":"module","meta":{}}`:                   ErrNotMessage.Error(),
		`{"type":5}`:                                             ErrNotMessage.Error(),
		`[1]`:                                                    ErrNotObject.Error(),
		`{`:                                                      "line 1, column 2: the text ends in the middle",
	} {
		m, err := DecodeDraft([]byte(in), "main", "id")
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = encoded(t, m)
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// Decoding an object of a quarter of a million members takes linear time.
func TestObjectOfManyKeys(t *testing.T) {
	t.Parallel()
	b := []byte{'{'}
	for i := 0; len(b) < MaxFile/2; i++ {
		b = fmt.Appendf(b, `"%x":1,`, i)
	}
	b = append(b, `"z":1}`...)
	begin := time.Now()
	m, err := DecodeDraft(append([]byte(`{"body":"",`), b[1:]...), "main", "id")
	must(t, err)
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 3*time.Minute {
		t.Errorf("took %v", took)
	}
}

// An empty object is one: a payload may be {}.
func TestReadEmptyObject(t *testing.T) {
	if o, err := ReadObject([]byte(" {} ")); o == nil || len(o) != 0 || err != nil {
		t.Errorf("%#v, %v", o, err)
	}
}

// Decoding never panics, keeps every unknown member, and says where an error is.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		everything, `{}`, `[]`, `null`, ``, `{"id":"` + idA + `","from":"alice@main"}`, "{\"body\":\"\xc3\"}",
		`{"to":"bob","from":"drop"}`, `{"to":["bob@main.build","x@y."],"from":"alice@main.laptop"}`, `{"n":1e999,"n":2}`, `{"a":{"a":{"a":null}}}`, `{"sent_at":"0000-01-01T00:00:00+23:59"}`,
		`{"body":"\ud800"}`, `{"meta":{"atm":5}}`, "{ \"a\" :\r\n\t[ 1 ,\n2 ] }", `{"a":1}{"b":2}`, "\ufeff{}", `{"":"","\u0000":0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := ReadObject(data)
		located(t, data, err)
		if err == nil && !json.Valid(data) {
			t.Fatal("taken for JSON, which it is not")
		}
		_, err = Decode(data)
		located(t, data, err)
		_, err = DecodeDraft(data, "main")
		if !errors.Is(err, ErrNotMessage) {
			located(t, data, err)
		}
		m, err := DecodeDraft(data, "main", "id")
		if errors.Is(err, ErrNotMessage) {
			return
		}
		if located(t, data, err); err != nil {
			return
		}
		enc := []byte(encoded(t, m))
		if bytes.IndexByte(enc, '\n') >= 0 {
			t.Fatalf("more than one line: %q", enc)
		}
		again, err := ReadObject(enc)
		if err != nil {
			t.Fatalf("%s: %v", enc, err)
		}
		kept(t, o, again, messageFields()...)
		kept(t, o.Object("meta"), again.Object("meta"), "atm")
		if o.Has("payload") {
			kept(t, o.Object("payload"), again.Object("payload"))
		}
		kept(t, o.Object("origin"), again.Object("origin"), "via", "uid", "run")
		var before, after []json.RawMessage
		json.Unmarshal(o.Get("attachments"), &before)
		json.Unmarshal(again.Get("attachments"), &after)
		for i := range min(len(before), len(after)) {
			x, _ := ReadObject(before[i])
			y, _ := ReadObject(after[i])
			kept(t, x, y, "name", "sha256", "size", "media_type")
		}
		m2, err := DecodeDraft(enc, "main", "id")
		if err != nil {
			t.Fatalf("%s: %v", enc, err)
		}
		if enc2 := encoded(t, m2); enc2 != string(enc) {
			t.Fatalf("%s\nbecame\n%s", enc, enc2)
		}
	})
}

// located fails unless a decoding error points into the text.
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

// kept fails unless every unknown member is in both, to the digit.
func kept(t *testing.T, before, after Object, known ...string) {
	t.Helper()
	for _, m := range before {
		if slices.Contains(known, m.Name) || m.Name == "�" || string(m.Value) == "null" {
			continue
		}
		if x, y := string(Compact(before.Get(m.Name))), string(Compact(after.Get(m.Name))); x != y {
			t.Fatalf("%q was %s and became %s", m.Name, x, y)
		}
	}
}

func TestClipStart(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "0123456789": "…\n6789", "12345678é": "…\n78é", "éééééé": "…\néé"} {
		if got := ClipStart(text, 8); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
