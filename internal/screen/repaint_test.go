package screen

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown is what Repaint promises to carry: everything but notes, answers and
// counters. A blank place and a space look the same.
func shown(s *Screen) state {
	st := stateOf(s)
	st.Notes, st.Replies, st.Scrolled = nil, "", 0
	for _, row := range st.Cells {
		for x := range row {
			if row[x].Text == "" {
				row[x].Text = " "
			}
		}
	}
	return st
}

// repainted is a second terminal that shows s.
func repainted(s *Screen) *Screen {
	t := New(s.cols, s.rows, s.main.limit)
	t.Write([]byte("\x1b[31;44mleft over\x1b[5;9r\x1b[?6h\x1b)0\x0e")) // a viewer is not always fresh
	t.Write(s.Repaint(s.main.limit))
	t.main.hist = min(t.main.hist, s.main.hist)
	return t
}

func TestRepaint(t *testing.T) {
	for name, feed := range map[string]string{
		"nothing":        "",
		"text":           "one\r\ntwo \x1b[1;31mred\x1b[0m plain",
		"scrollback":     "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8",
		"soft wraps":     "abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz\r\nend",
		"wrapped blank":  "abcdefghij\x1b[44mX\x1b[m\b\x1b[K",
		"wide wrap":      "123456789端末\r\nx",
		"pending wrap":   "1234567890",
		"pending wide":   "12345678端",
		"background":     "\x1b[44m\x1b[2J\x1b[2;3H\x1b[0mx\x1b[41m\x1b[K",
		"clusters":       "e\u0301a 👩‍🔬! ✳️ 🇩🇪 \u0e01\u0e33",
		"flags apart":    "🇩 \x1b[3G🇪\x1b[1G",
		"marks alone":    "\u0903\r\n\u0301x",
		"styles":         "\x1b[1;2;3;4;5;7;8;9;53mx\x1b[0;4:3my\x1b[21mz\x1b[0;38;5;200;48;2;1;2;3mw\x1b[91;102mv",
		"alternate":      "main\x1b[31m\x1b[?1049h\x1b[2;2H\x1b[32malt\x1b7\x1b[1;1Hq",
		"alternate 47":   "main\x1b[?47halt",
		"margins":        "\x1b[2;3r\x1b[?6h\x1b[2;4Hx",
		"saved":          "\x1b[3;4H\x1b[35m\x1b(0\x1b7\x1b[H\x1b[m\x1b(Bx",
		"charsets":       "\x1b)0\x0eqqq",
		"single shift":   "\x1b*0\x1bN",
		"tabs":           "\x1b[3g\x1b[3G\x1bH\x1b[7G\x1bH\r\tx",
		"modes":          "\x1b[?1;5;7;9;1004;1006;2004;2026;1007;2031l\x1b[?1;5;1003;1004;1006;2004;2026;1007;2031;25h\x1b=\x1b[4h\x1b[20h\x1b[?7l\x1b[>4;2m\x1b[>7u\x1b[4 q",
		"hidden":         "\x1b[?25lx",
		"title":          "\x1b]0;✳ a; b\ax",
		"torn rune":      "x\xe2\x9c",
		"torn CSI":       "x\x1b[3",
		"torn escape":    "x\x1b",
		"torn OSC":       "x\x1b]0;tit",
		"torn OSC end":   "x\x1b]0;tit\x1b",
		"torn DCS":       "x\x1bP+q",
		"lines below":    "a\r\nb\r\nc\x1b[H",
		"insert on wide": "端末端末端\x1b[1;2H\x1b[@x",
	} {
		t.Run(name, func(t *testing.T) {
			s := New(10, 4, 100)
			s.Write([]byte(feed))
			other := repainted(s)
			same(t, fmt.Sprintf("repainted by %q", s.Repaint(100)), shown(s), shown(other))
			for _, sc := range []*Screen{s, other} {
				sc.Write([]byte("5;7H\x1b\\\x1b[2Cqz\x1b8y\t端\x1b[?1049l\x1b8z\r\n\r\n\r\n\r\nw"))
			}
			same(t, "what went on", shown(s), shown(other))
		})
	}
}

// TestRepaintAnywhere: a viewer that comes in the middle of anything sees in
// the end what one sees who was there from the start.
func TestRepaintAnywhere(t *testing.T) {
	for name, data := range captures(t) {
		s := New(100, 30, 200)
		step := len(data)/4 + 1
		for i := 0; i < len(data); i += step {
			end := min(i+step, len(data))
			s.Write(data[i:end])
			other := repainted(s)
			same(t, fmt.Sprintf("%s repainted at %d", name, end), shown(s), shown(other))
			rest := New(100, 30, 200)
			rest.Write(data[:end])
			other.Write(data[end:])
			rest.Write(data[end:])
			if a, b := rest.Lines(), other.Lines(); !slices.Equal(a, b) {
				t.Fatalf("%s went on from %d differently:\n%s", name, end, cmp.Diff(a, b))
			}
		}
	}
}

func TestRepaintLimitsScrollback(t *testing.T) {
	s := New(10, 2, 100)
	s.Write([]byte("1\r\n2\r\n3\r\n4\r\n5"))
	other := New(10, 2, 100)
	other.Write(s.Repaint(1))
	if d := cmp.Diff([]string{"3", "4", "5"}, other.Tail(10)); d != "" {
		t.Error(d)
	}
}

// TestReset: what a viewer is left with is an ordinary terminal, with the cursor
// where the main screen has it.
func TestReset(t *testing.T) {
	for _, feed := range []string{
		"ab\r\ncd",
		"ab\r\ncd\x1b[?1049h\x1b[2;3r\x1b[3;3H\x1b[31malt",
		"\x1b[1;3r\x1b[2;3H\x1b[1;33m\x1b[?1;5;1003;1006;2004;1004;2026;2031;1007;25h\x1b[?7l\x1b[4h\x1b=\x1b[>7u\x1b[>4;2m\x1b[3 q\x1b)0\x0e",
	} {
		s := New(10, 4, 0)
		s.Write([]byte(feed))
		s.Write([]byte(Reset))
		if m := s.Modes(); m != (Modes{}) {
			t.Errorf("%q: modes %+v", feed, m)
		}
		if x, y := s.Cursor(); x != 2 || y != 1 {
			t.Errorf("%q: cursor at %d,%d", feed, x, y)
		}
		if s.pen != (cell{}) || s.charsets != (charsets{}) || s.top != 0 || s.bottom != 3 {
			t.Errorf("%q: style, charsets or margins are left", feed)
		}
	}
}
