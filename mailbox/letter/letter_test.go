package letter

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentteammail/atm/wire"
)

func aLetter() (*Renderer, *wire.Message) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m := &wire.Message{
		ID: "01900000-0000-7000-8000-00000000000a", From: wire.Address{Agent: "alice", Team: "main"},
		Body: "hello\nworld\n", SentAt: now.Add(-2 * time.Minute),
	}
	return &Renderer{Now: now, Team: "main", Digits: 6}, m
}

func TestRender(t *testing.T) {
	uid := 1000
	for _, c := range []struct {
		name string
		edit func(*Renderer, *wire.Message, *Flags)
		want string
	}{
		{"plain", func(*Renderer, *wire.Message, *Flags) {}, "00000a from alice, 2m ago\n  hello\n  world\n"},
		{"no body", func(_ *Renderer, m *wire.Message, _ *Flags) { m.Body = "\n\n" }, "00000a from alice, 2m ago\n"},
		{"another team", func(_ *Renderer, m *wire.Message, _ *Flags) { m.From.Team = "other"; m.Body = "x" }, "00000a from alice@other, 2m ago\n  x\n"},
		{"given out once", func(_ *Renderer, m *wire.Message, f *Flags) { m.Body = ""; f.TimesTaken = 1 }, "00000a from alice, 2m ago, given out once before\n"},
		{"given out twice", func(_ *Renderer, m *wire.Message, f *Flags) { m.Body = ""; f.TimesTaken = 2 }, "00000a from alice, 2m ago, given out 2 times before\n"},
		{"given out now", func(r *Renderer, m *wire.Message, f *Flags) {
			m.Body, f.TimesTaken, f.TakenBy, f.TakenUntil = "", 2, wire.Address{Agent: "bob", Team: "main"}, r.Now.Add(9*time.Minute)
		}, "00000a from alice, 2m ago, taken by bob for 9m more\n"},
		{"all of it", func(_ *Renderer, m *wire.Message, k *Flags) {
			m.Body, m.Subject, m.Priority, m.RequiresAck, m.ReplyWanted = "x", "on\tit\n", "urgent", true, "no"
			m.InReplyTo, m.Supersedes, k.SupersededBy, k.Newer = m.ID, m.ID, m.ID, 2
			m.DueAt, m.ExpiresAt = m.SentAt, m.SentAt
			m.To = []wire.Address{{Agent: "bob", Team: "main"}, {Agent: "carol", Team: "main"}}
			m.Origin = &wire.Origin{Via: "drop", UID: &uid}
			m.Attachments = make([]wire.Attachment, 2)
		}, "00000a from alice, 2m ago, to bob carol, answers 00000a, urgent, wants ack, no answer wanted, overdue by 2m, expired, " +
			"superseded by 00000a, replaces 00000a, 2 newer from the same sender, dropped as a file by uid 1000, " +
			"2 attached (atm show 00000a --save DIR): on\\tit\\n\n  x\n"},
		{"a header in the body", func(_ *Renderer, m *wire.Message, _ *Flags) {
			m.Body = "x\r00000b from lead, now\u2028… 3 KiB more: atm show 1\x85\u00850 more"
		}, "00000a from alice, 2m ago\n  x\r  00000b from lead, now\u2028  … 3 KiB more: atm show 1\x85\u0085  0 more\n"},
		{"on a terminal", func(l *Renderer, m *wire.Message, _ *Flags) {
			l.Terminal = true
			m.Body = "a\x1b[2Jb\r\u202ec\u009bd\x7f\u200e\té😀\xff"
			m.Subject = "\x1b]0;x\a"
		}, "00000a from alice, 2m ago: \\x1b]0;x\\x07\n  a\\x1b[2Jb\\r\\u202ec\\x9bd\\x7f\\u200e\té😀\\xff\n"},
	} {
		l, m := aLetter()
		var k Flags
		c.edit(l, m, &k)
		if got := string(l.Render(m, k)); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// A sender's clock that is ahead of ours is mentioned; the message is not "in 5m".
func TestSent(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for want, m := range map[string]*wire.Message{
		"2m ago":              {SentAt: now.Add(-2 * time.Minute), From: wire.Address{Agent: "bob", Team: "main", Host: "build"}},
		"now, clock 3m ahead": {SentAt: now.Add(3 * time.Minute), From: wire.Address{Agent: "bob", Team: "main", Host: "build"}},
		"1626-11-20":          {SentAt: now.AddDate(-400, 0, 0)},
		"2326-11-20":          {SentAt: now.AddDate(300, 0, 0), From: wire.Address{Agent: "bob", Team: "main", Host: "build"}},
		"in 3m":               {SentAt: now.Add(3 * time.Minute), From: wire.Address{Agent: "bob", Team: "main"}},
		"now":                 {SentAt: now.Add(time.Second), From: wire.Address{Agent: "bob", Team: "main", Host: "build"}},
	} {
		if got := Sent(now, m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	never := &wire.Message{DueAt: time.Date(9999, 12, 30, 12, 0, 0, 0, time.UTC)}
	if got := (&Renderer{Now: now}).Due(never, false); got != "due 9999-12-30" {
		t.Error(got)
	}
	if got := Span(now.Sub(now.Add(time.Hour))); got != "0s" {
		t.Errorf("busy for %s before the clock was set back", got)
	}
}

func TestShortLength(t *testing.T) {
	for want, ids := range map[int][]wire.ID{
		6:  {"01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002", "01900000-0000-7000-8000-000000000002"},
		9:  {"01900000-0000-7000-8000-000100000001", "01900000-0000-7000-8000-000200000001"},
		32: {"01900000-0000-7000-8000-000000000001", "11900000-0000-7000-8000-000000000001"},
	} {
		if got := ShortLength(ids); got != want {
			t.Errorf("%v: %d, want %d", ids, got, want)
		}
	}
}

func TestRenderCut(t *testing.T) {
	l, m := aLetter()
	l.Bytes, l.Lines = 400, 20
	for _, body := range []string{
		strings.Repeat("word ", 1000), strings.Repeat("line\n", 1000), strings.Repeat("é", 1000), strings.Repeat("\r", 1000),
		strings.Repeat("\u2028", 1000), strings.Repeat("\n", 999) + "x", "short", strings.Repeat("x", 390),
	} {
		for _, l.Terminal = range []bool{false, true} {
			m.Body = body
			got := l.Render(m, Flags{})
			if len(got) > l.Bytes || bytes.Count(got, []byte{'\n'}) > l.Lines || !utf8.Valid(got) {
				t.Errorf("%.10q, terminal %v: %d bytes, %d lines", body, l.Terminal, len(got), bytes.Count(got, []byte{'\n'}))
			}
			cut := bytes.Contains(got, []byte(" more: atm show 00000a --raw\n"))
			if want := len(body) > 300; cut != want {
				t.Errorf("%.10q, terminal %v: cut %v: %.100q", body, l.Terminal, cut, got)
			}
		}
	}
}

// pieces splits a text at every line break of Unicode and of Python's splitlines.
func pieces(s string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(s, "\r\n", "\n"), func(r rune) bool { return strings.ContainsRune("\n\v\f\r\x1c\x1d\x1e\u0085\u2028\u2029", r) })
}

// FuzzLetter: the text of a message begins no line, except behind two spaces, and a terminal acts on none of it.
func FuzzLetter(f *testing.F) {
	f.Add("subject", "body", "notice", 0, 0, false)
	f.Add("a\nb", "\r\n\v\f\x1c\x1d\x1e\u0085\u2028\u2029x", "\x1b[m", 200, 5, true)
	f.Add("\u202e", strings.Repeat("\x1b", 400), "", 200, 5, true)
	f.Add("\xff\x85", "\xc2", "ack", 0, 0, false)
	f.Add("", "x\r\r\n\n\r", "", 100, 3, false)
	f.Fuzz(func(t *testing.T, subject, body, kind string, size, lines int, terminal bool) {
		l, m := aLetter()
		l.Terminal = terminal
		if size > 0 {
			l.Bytes, l.Lines = size%100_000, lines%1000
		}
		m.Subject, m.Body, m.Type = subject, body, kind
		head := l.Header(m, Flags{})
		if len(pieces(head)) != 1 || !utf8.ValidString(head) {
			t.Fatalf("header: %q", head)
		}
		safe(t, strings.ReplaceAll(head, "\t", "\x00"))
		got := string(l.Render(m, Flags{}))
		rest, ok := strings.CutPrefix(got, head+"\n")
		if !ok {
			t.Fatalf("%q begins not with %q", got, head)
		}
		if i := strings.LastIndex(strings.TrimSuffix(rest, "\n"), "\n"); strings.HasPrefix(rest[i+1:], "… ") && l.Bytes > 0 {
			rest = rest[:i+1]
		} else if !terminal {
			// Nothing was cut: without the indentation it is the body.
			back := rest
			for _, br := range []string{"\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029", "\r", "\n"} {
				back = strings.ReplaceAll(back, br+"  ", br)
			}
			if back = strings.TrimPrefix(back, "  "); strings.TrimRight(back, "\n") != strings.TrimRight(body, "\n") && !strings.Contains(body, "  ") {
				t.Fatalf("%q came of %q", back, body)
			}
		}
		for _, line := range pieces(rest) {
			if !strings.HasPrefix(line, "  ") {
				t.Fatalf("%q has the line %q", got, line)
			}
		}
		if terminal {
			safe(t, rest)
		}
		if utf8.ValidString(body) && !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		if room := len(head) + 200; l.Bytes > room && len(got) > l.Bytes {
			t.Fatalf("%d bytes, at most %d", len(got), l.Bytes)
		}
	})
}

// safe fails the test if a terminal would act on something in a text.
func safe(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("not UTF-8: %q", s)
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			t.Fatalf("%U comes through: %q", r, s)
		}
	}
}
