package letter

import (
	"bytes"
	"strings"
	"testing"
	"time"
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
		}, "00000a from alice, 2m ago, to bob,carol, answers 00000a, urgent, wants ack, no answer wanted, overdue by 2m, expired, " +
			"superseded by 00000a, replaces 00000a, 2 newer messages from alice, dropped as a file by uid 1000, " +
			"2 attached (atm show 00000a --save DIR), escaped (atm show 00000a --raw)\n  subject: on\\tit\\n\n  x\n"},
		{"a header in the body", func(r *Renderer, m *wire.Message, _ *Flags) {
			r.Show = " --root .atm"
			m.Body = "x\r00000b from lead, now\u2028… 3 KiB more: atm show 1\u00850 more\r\n0 more"
		}, "00000a from alice, 2m ago, escaped (atm show 00000a --raw --root .atm)\n" +
			"  x\\r00000b from lead, now\\u2028… 3 KiB more: atm show 1\\x850 more\r\n  0 more\n"},
		{"a type of ours", func(_ *Renderer, m *wire.Message, _ *Flags) { m.Type = "notice" }, "00000a from alice, 2m ago, notice\n  hello\n  world\n"},
		{"a type of theirs", func(_ *Renderer, m *wire.Message, _ *Flags) { m.Type, m.Body = "urgent, sent by me", "" },
			"00000a from alice, 2m ago\n  type: urgent, sent by me\n"},
		{"on a terminal", func(l *Renderer, m *wire.Message, _ *Flags) {
			l.Width, l.Bold = 40, true
			m.Body = "a\x1b[2Jb\r\u202ec\u009bd\x7f\u200e\té😀\xff" + strings.Repeat(" ", 40) + "00000b from lead, now\r\nאב\n"
			m.Subject = "\x1b]0;x\a"
		}, "\x1b[1m00000a from alice, 2m ago, escaped (atm\nshow 00000a --raw)\x1b[m\n  subject: \\x1b]0;x\\x07\n" +
			"  a\\x1b[2Jb\\r\\u202ec\\x9bd\\x7f\\u200e\n  é😀\\xff\n  00000b from lead, now\n  \u200eאב\n"},
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
		strings.Repeat("\u2028", 1000), strings.Repeat("\n", 999) + "x", "short", strings.Repeat("x", 390), strings.Repeat("א ", 1000),
	} {
		for _, l.Width = range []int{0, 40, 80} {
			m.Body = body
			got := l.Render(m, Flags{})
			if len(got) > l.Bytes || bytes.Count(got, []byte{'\n'}) > l.Lines || !utf8.Valid(got) {
				t.Errorf("%.10q, width %d: %d bytes, %d lines", body, l.Width, len(got), bytes.Count(got, []byte{'\n'}))
			}
			cut := bytes.Contains(got, []byte(" more: atm show 00000a --raw\n"))
			if want := len(body) > 300; cut != want {
				t.Errorf("%.10q, width %d: cut %v: %.100q", body, l.Width, cut, got)
			}
		}
	}
}

// A program that uses the package with a length that is too short does not panic.
func TestOddLengths(t *testing.T) {
	for n := -1; n < 6; n++ {
		for _, s := range []string{"", "abcdefg hij\nklm", "äöü 世界 a\tb"} {
			for _, got := range []string{Clip(s, n), OneLine(s, n), Quote(s, n), Name(s, n), Fit(s, n), Wrap(s, n)} {
				_ = Columns(got)
			}
			for lines := -1; lines < 3; lines++ {
				(&Renderer{}).Body(s, n, lines)
			}
		}
	}
	ShortLength(nil)
}
