package mailbox

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// settleDrops takes in until nothing waits any more: where there are no
// leases, a file is left alone until it is a second old.
func settleDrops(t testing.TB, b *Box) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		taken := takeIn(t, b)
		if taken.Waiting == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d files wait and wait", taken.Waiting)
		}
	}
}

// FuzzDropped: a file of any name and content that is dropped is exactly one
// message, one event, one bad file, or still there since such names are passed
// over; and what it said is not lost.
func FuzzDropped(f *testing.F) {
	for _, s := range []struct{ name, content string }{
		{"note", "hello\n"}, {"m.json", `{"body":"x"}`}, {"m.json", `{"id":"` + gone + `","body":"x","theirs":1e400}`},
		{"m.json", `{"id":"` + gone + `","type":"permission_reply","payload":{}}`}, {"e.json", `{"kind":"turn_started"}`},
		{"h.json", `{"input_type":"message","text":"a\u0000b"}`}, {"h", `{"text":1,"input_type":"abort"}`},
		{"torn.json", `{"body":`}, {"a.json", "[1,2]"}, {"x.JSON", "x"}, {"bom.json", "\ufeff{\"body\":\"x\"}"},
		{"controls", strings.Repeat("\x01", 5000)}, {"\xff\xfe", "x"}, {".hidden", "x"}, {"x~", "x"}, {"4913", "x"}, {"#x#", "x"},
		{"x.reason", "{"}, {"x.json.reason.json", "{"}, {gone + ".json", `{"body":"x"}`}, {gone + ".json", "torn"},
		{strings.ToUpper(gone) + ".json", `{"id":"` + gone + `","body":"x"}`}, {strings.Repeat("n", 250) + ".json", "{"},
		{strings.Repeat("é", 127), "x"}, {gone + ".x.drop", "x"}, {"empty", ""}, {"bin", "\x00\x01\xff"}, {"m.json", `{"sent_at":"0000-01-01T00:00:00+23:59","body":""}`},
	} {
		f.Add(s.name, []byte(s.content), false)
		f.Add(s.name, []byte(s.content), true)
	}
	top := scratch(f)
	f.Fuzz(func(t *testing.T, name string, content []byte, inNew bool) {
		if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
			t.Skip("no name of a file")
		}
		path, err := os.MkdirTemp(top, "drop-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		s := openStore(t, path, nil, "bob")
		bob := s.Box("bob")
		where := "inbox"
		if inNew {
			where = "inbox/new"
		}
		at := filepath.Join(bob.Path(), where, name)
		if _, err := os.Lstat(at); err == nil {
			t.Skip("one of the mailbox's own directories")
		}
		drop(t, bob, where, name, content)
		settleDrops(t, bob)
		isMessage := inNew && len(name) == 41 && wire.IsID(name[:36]) && name[36:] == ".json"
		if !isMessage && (notDropped(name) || len(content) == 0) {
			if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, content) {
				t.Fatalf("passed over, and it is %q: %v", got, err)
			}
			return
		}
		if _, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(at); err == nil {
			t.Fatal("it is still there")
		}
		c := takeCensus(t, path, "bob")
		c.sound(t)
		events := dropEvents(t, bob)
		if len(c.places)+len(c.bad)+len(events) != 1 || len(c.tmp)+len(c.drops) > 0 {
			t.Fatalf("%d messages, %d events, bad %q, tmp %q, drops %q", len(c.places), len(events), c.bad, c.tmp, c.drops)
		}
		for _, b := range c.bad {
			if got, err := os.ReadFile(filepath.Join(bob.Path(), "inbox", "bad", b)); err != nil || !bytes.Equal(got, content) {
				t.Fatalf("bad has %q: %v", got, err)
			}
			if files, err := bob.BadFiles(0); err != nil || len(files) != 1 || files[0].Reason == "" || files[0].Reason == "no reason noted" {
				t.Fatal(files, err)
			}
		}
		text := bytes.TrimPrefix(content, []byte("\ufeff"))
		for _, e := range events {
			var want bytes.Buffer
			if e.Wire == nil {
				continue // a line of another log is taken over, not kept under wire
			}
			if json.Compact(&want, text) != nil || want.String() != string(e.Wire) {
				t.Fatalf("the event has %q of %q", e.Wire, content)
			}
		}
		for id, m := range c.texts {
			if c.place(id) != placeDone && c.place(id) != placeCur {
				t.Fatalf("read, and in %s", c.place(id))
			}
			if !says(t, s, m, content, text) {
				t.Fatalf("%s\ncame of %q", m.Append(nil), content)
			}
		}
	})
}

func dropEvents(t tb, b *Box) (out []wire.Event) {
	for _, e := range eventsOf(t, b) {
		if e.Source == "drop" {
			out = append(out, e)
		}
	}
	return out
}

// says reports whether a message holds what was dropped: as its body, as an
// attachment, or in its fields.
func says(t testing.TB, s *Store, m *wire.Message, content, text []byte) bool {
	if m.Body == string(content) {
		return true
	}
	for _, a := range m.Attachments {
		if f, err := s.Attachment(a); err == nil {
			got, _ := io.ReadAll(f)
			f.Close()
			if bytes.Equal(got, content) {
				return true
			}
		}
	}
	if bytes.Equal(m.Payload, compacted(text)) && m.Type == wire.TypeHumanInput {
		return true
	}
	before, err := wire.Object(text)
	if err != nil {
		return false
	}
	after, err := wire.Object(m.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, f := range after {
		have[f.Key] = string(compacted(f.Raw))
	}
	for _, f := range before {
		switch f.Key {
		case "id", "type", "from", "to", "thread", "in_reply_to", "supersedes", "sent_at", "expires_at", "due_at", "priority",
			"requires_ack", "reply_wanted", "hop", "origin", "meta", "attachments":
			continue // filled in, or written another way; wire's tests look closer
		case "body", "subject":
			var x, y string
			json.Unmarshal(f.Raw, &x)
			json.Unmarshal([]byte(have[f.Key]), &y)
			if x != y {
				return false
			}
		default:
			if string(f.Raw) != "null" && have[f.Key] != string(compacted(f.Raw)) {
				return false
			}
		}
	}
	return true
}

func compacted(b []byte) []byte {
	var out bytes.Buffer
	json.Compact(&out, b)
	return out.Bytes()
}
