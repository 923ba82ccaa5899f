package driver

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/screen"
)

// marks are the characters that input boxes are drawn with.
var marks = []string{"❯", "›", ">", "!", "#", "╹"}

func FuzzRead(f *testing.F) {
	// Short ones: an input of a whole screen keeps the fuzzer minimizing.
	rule := strings.Repeat("─", 20)
	f.Add([]byte(rule+"\r\n❯ \r\n"+rule+"\x1b[2;3H"), uint8(19), uint8(5), "✳ Claude Code")
	f.Add([]byte("› \x1b[2mAsk\x1b[m\r\n\r\n  model\x1b[1;3H"), uint8(40), uint8(5), "p")
	f.Add([]byte("▄▄▄▄▄▄▄▄\r\n > a\r\n▀▀▀▀▀▀▀▀"), uint8(7), uint8(5), "◇  Ready (p)")
	f.Add([]byte("┃\r\n┃  \r\n┃\r\n┃  Build\r\n╹▀▀▀▀▀▀\x1b[2;4H"), uint8(40), uint8(8), "OpenCode")
	f.Add([]byte("\x1b[?2004h$ ls"), uint8(40), uint8(8), "")
	f.Add([]byte("❯ 1. a\r\n  2. b\r\n┃  △ x\r\n┃ Allow once  Reject  ⇆ select  enter confirm"), uint8(80), uint8(5), "⠋ x")
	f.Add([]byte("\x1b]9279;{\"Options\":[{}"+strings.Repeat(",{}", 30)+"]}\x1b\\"), uint8(40), uint8(5), "")
	f.Add([]byte("\x1b]9279;{\x1b\\"), uint8(40), uint8(5), "")
	f.Add([]byte("Enter to select · Esc to cancel"), uint8(40), uint8(5), "") // the foot of a question alone
	f.Fuzz(func(t *testing.T, b []byte, cols, rows uint8, title string) {
		s := screen.New(int(cols%200)+1, int(rows%60)+1, 10)
		s.Write(b)
		l := LookAt(s)
		l.Title = title
		marked := false
		for _, line := range l.Lines {
			marked = marked || hasAny(line, marks)
		}
		for _, d := range drivers() {
			r := d.Read(l, Reading{})
			again := d.Read(l, r)
			if again.Activity == "" || r.Prompt != (r.NotPromptReason == "") {
				t.Fatalf("%s: %+v", d.Name, r)
			}
			if r.Prompt && (r.HasDraft || r.Dialog != nil || l.Modes.Sync || !d.Plain && !marked) {
				t.Fatalf("%s: a prompt on %q: %+v", d.Name, l.Lines, r)
			}
			if q := r.Dialog; q != nil && (q.Fingerprint == "" || q.Dialog == "") {
				t.Fatalf("%s: %+v", d.Name, q)
			}
			d.HasInBox(l, title)
			d.HasAccepted(l, title)
			d.Response(l, title, len(l.Lines)%2 == 0)
			// A look that was put together by hand may be torn in any way.
			torn := Look{Lines: l.Lines, Cells: l.Cells[:len(l.Cells)/2], CursorX: int(cols), CursorY: int(rows), Cols: int(rows)}
			d.Read(torn, r)
			d.HasInBox(torn, title)
		}
	})
}

// No file makes reading a screen fail.
func FuzzOwnDriver(f *testing.F) {
	f.Add([]byte("x\r\n> hi\r\n"), uint8(40), uint8(6), uint8(3), ">", "working")
	f.Add([]byte("┃\r\n┃  \r\n┃\r\n┃  Build\r\n╹▀▀▀▀▀▀\x1b[2;4H"), uint8(40), uint8(8), uint8(2), "┃", "╹")
	f.Add([]byte("▄▄▄▄▄▄▄▄\r\n > a\r\n▀▀▀▀▀▀▀▀"), uint8(7), uint8(5), uint8(1), "> ", "▀")
	f.Add([]byte("────────\r\n❯ 1. a\r\n  2. b\r\nYes  No\r\n"), uint8(20), uint8(5), uint8(0), "❯", "a")
	f.Add([]byte("above\r\n$  x\r\n 1. a\r\n 2. b"), uint8(20), uint8(5), uint8(4), "$", "above")
	f.Fuzz(func(t *testing.T, b []byte, cols, rows, keys uint8, glyph, text string) {
		s := screen.New(int(cols%100)+1, int(rows%30)+1, 10)
		s.Write(b)
		l := LookAt(s)
		var edges []string
		for i, edge := range []string{"top = '^[─▄]|" + regexp.QuoteMeta(text) + "'", "bottom = '^.*\\n[─▀╹]'", "more = '^ *(.?)'", "cut = '^──'", "draws_cursor = true"} {
			if keys>>i&1 > 0 {
				edges = append(edges, edge)
			}
		}
		var dialog []string
		for i, edge := range []string{"top = '^[─╭]'", "row = '^[│┃]'", "bottom = '^[─╰]'", "heading = '^" + regexp.QuoteMeta(text) + "'"} {
			if keys>>(i+3)&1 > 0 {
				dialog = append(dialog, edge)
			}
		}
		file, mistakes := agents.Parse("x", fmt.Appendf(nil, `[screen]
rows = [{ kind = "busy", pattern = %[5]q, above = { gap = "ink" } }, { kind = "answer", pattern = '^\S' }, { kind = "message", pattern = '^.> ', prefix = %[5]q }]
indent = %[3]d
message_marks_every_row = true
[screen.box]
text = '%[2]s(.*)'
%[1]s
starting = %[5]q
modes = [{ pattern = '^ *%[2]s\.(.*)', means = "bang mode" }]
below = [{ text = %[5]q, means = "usage limit" }]
[screen.dialog]
%[4]s
option = '(?P<selected>%[2]s)? *(?P<label>\S+)'
hints = [%[5]q]
choose = [{ pattern = %[5]q, means = "digit Enter" }]
free_hint = %[5]q
`, strings.Join(edges, "\n"), regexp.QuoteMeta(glyph), keys%50, strings.Join(dialog, "\n"), text))
		if len(mistakes) > 0 {
			return
		}
		d := newDriver(file)
		r := d.Read(l, Reading{})
		if r.Prompt != (r.NotPromptReason == "") || r.Prompt && (r.HasDraft || r.Dialog != nil) {
			t.Fatalf("a prompt on %q: %+v", l.Lines, r)
		}
		d.Explain(l)
		d.HasInBox(l, text)
		d.HasAccepted(l, text)
		d.Response(l, text, true)
		torn := Look{Lines: l.Lines, Cells: l.Cells[:len(l.Cells)/2], CursorX: int(cols), CursorY: int(rows), Cols: int(rows)}
		d.Read(torn, r)
		d.HasInBox(torn, text)
	})
}
