package driver

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/screen"
)

func FuzzRead(f *testing.F) {
	// Short ones: an input of a whole screen keeps the fuzzer minimizing.
	rule := strings.Repeat("─", 20)
	f.Add([]byte(rule+"\r\n❯ \r\n"+rule+"\x1b[2;3H"), uint8(19), uint8(5), "✳ Claude Code")
	f.Add([]byte("› \x1b[2mAsk\x1b[m\r\n\r\n  model\x1b[1;3H"), uint8(40), uint8(5), "p")
	f.Add([]byte("▄▄▄▄▄▄▄▄\r\n > a\r\n▀▀▀▀▀▀▀▀"), uint8(7), uint8(5), "◇  Ready (p)")
	f.Add([]byte("\x1b[?2004h$ ls"), uint8(40), uint8(8), "")
	f.Add([]byte("┃  △ x\r\n┃ Allow once  Reject  ⇆ select  enter confirm"), uint8(80), uint8(5), "⠋ x")
	f.Fuzz(func(t *testing.T, b []byte, cols, rows uint8, title string) {
		s := screen.New(int(cols%200)+1, int(rows%60)+1, 10)
		s.Write(b)
		l := LookAt(s)
		l.Title = title
		for _, d := range drivers() {
			check(t, d, l, title)
		}
	})
}

// check reads a screen, and one that was put together by hand and may be torn in any way.
func check(t *testing.T, d *Driver, l Look, text string) {
	r := d.Read(l, Reading{})
	if r.Activity == "" || r.Prompt != (r.NotPromptReason == "") || r.Prompt && (r.Draft != "" || r.Dialog != nil || l.Modes.Sync) {
		t.Fatalf("%s on %q: %+v", d.Name, l.Lines, r)
	}
	if q := r.Dialog; q != nil && (q.Fingerprint == "" || q.Dialog == "") {
		t.Fatalf("%s: %+v", d.Name, q)
	}
	torn := Look{Lines: l.Lines, CursorX: len(text), CursorY: len(text) / 2}
	for _, l := range []Look{l, torn} {
		d.Read(l, r)
		d.HasInBox(l, text)
		d.HasAccepted(l, text)
		d.Explain(l)
	}
}

// No file makes reading a screen fail.
func FuzzOwnDriver(f *testing.F) {
	f.Add([]byte("x\r\n> hi\r\n"), uint8(40), uint8(6), uint8(3), ">", "working")
	f.Add([]byte("❯ 1. a\r\n  2. b\r\nYes  No\r\n"), uint8(20), uint8(5), uint8(0), "❯", "a")
	f.Fuzz(func(t *testing.T, b []byte, cols, rows, last uint8, glyph, text string) {
		s := screen.New(int(cols%100)+1, int(rows%30)+1, 10)
		s.Write(b)
		file, mistakes := agents.Parse("x", fmt.Appendf(nil, `[screen.asks]
pattern = '(?s)(?P<question>%[2]s.*)(?P<tool>.)'
option = '(?P<selected>%[1]s)? *(?P<number>\d)?(?P<label>\S+)'
[screen.busy]
last = %[3]d
pattern = '%[2]s'
[screen.prompt]
pattern = '%[1]s(?P<draft>(?s:.*))'
`, regexp.QuoteMeta(glyph), regexp.QuoteMeta(text), last%200))
		if len(mistakes) == 0 {
			check(t, newDriver(file), LookAt(s), text)
		}
	})
}
