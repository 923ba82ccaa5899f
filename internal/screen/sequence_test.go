package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSequences feeds a screen of 10x4 and looks at its lines; | stands for the
// end of a row.
func TestSequences(t *testing.T) {
	for _, c := range []struct{ name, feed, want string }{
		{"text", "ab\r\ncd", "ab|cd||"},
		{"wrap", "0123456789ab", "0123456789|ab||"},
		{"pending wrap and CR LF", "0123456789\r\nab", "0123456789|ab||"},
		{"pending wrap and backspace", "0123456789\bX", "01234567X9|||"},
		{"pending wrap and cursor left", "0123456789\x1b[DX", "01234567X9|||"},
		{"pending wrap and colour", "0123456789\x1b[31mX", "0123456789|X||"},
		{"no autowrap", "\x1b[?7l0123456789abc", "012345678c|||"},
		{"wide at the edge", "012345678端x", "012345678|端x||"},
		{"wide at the edge without autowrap", "\x1b[?7l012345678端x", "012345678x|||"},
		{"half of a wide overwritten", "端末\x1b[2Gx", " x末|||"},
		{"head of a wide overwritten", "端末\x1b[1Gx", "x 末|||"},
		{"scroll", "1\r\n2\r\n3\r\n4\r\n5", "2|3|4|5"},
		{"vertical tab and form feed", "a\vb\fc", "a| b|  c|"},
		{"tab", "a\tb\tc", "a       bc|||"},
		{"tab stop set and cleared", "\x1b[3g\x1b[4G\x1bH\ra\tb\tc", "a  b     c|||"},
		{"tab back", "abcdefghij\x1b[Zx", "abcdefghxj|||"},
		{"cursor", "\x1b[3;4Hx\x1b[Ay\x1b[2Dz\x1b[Bw\x1b[Cv", "|   zy|   xw v|"},
		{"cursor stops at the edges", "\x1b[99;99Hx\x1b[99A\x1b[99Dy", "y|||         x"},
		{"next and previous line", "abc\x1b[2Ex\x1b[Fy", "abc|y|x|"},
		{"column and row", "\x1b[5Gx\x1b[3dy\x1b[2`z", "    x|| z   y|"},
		{"relative column and row", "\x1b[3ax\x1b[1ey", "   x|    y||"},
		{"erase line", "0123456789\x1b[4G\x1b[K", "012|||"},
		{"erase line left", "0123456789\x1b[4G\x1b[1K", "    456789|||"},
		{"erase line all", "0123456789\x1b[4G\x1b[2Kx", "   x|||"},
		{"erase below", "aa\r\nbb\r\ncc\x1b[2;2H\x1b[J", "aa|b||"},
		{"erase above", "aa\r\nbb\r\ncc\x1b[2;1H\x1b[1J", "| b|cc|"},
		{"erase all", "aa\r\nbb\x1b[2Jx", "|  x||"},
		{"erase characters", "0123456789\x1b[3G\x1b[4X", "01    6789|||"},
		{"insert characters", "0123456789\x1b[3G\x1b[2@", "01  234567|||"},
		{"delete characters", "0123456789\x1b[3G\x1b[2P", "01456789|||"},
		{"insert cuts a wide", "01234567端\x1b[1G\x1b[@", " 01234567|||"},
		{"delete half of a wide", "端末\x1b[2G\x1b[P", " 末|||"},
		{"erase half of a wide", "端末\x1b[2G\x1b[X", "  末|||"},
		{"insert mode", "bc\r\x1b[4ha\x1b[4l", "abc|||"},
		{"insert mode, wide", "bc\r\x1b[4h端\x1b[4l", "端bc|||"},
		{"insert line", "a\r\nb\r\nc\x1b[2;3H\x1b[Lx", "a|x|b|c"},
		{"delete line", "a\r\nb\r\nc\x1b[1;3H\x1b[Mx", "x|c||"},
		{"scroll up", "a\r\nb\r\nc\x1b[S", "b|c||"},
		{"scroll down", "a\r\nb\r\nc\x1b[2T", "||a|b"},
		{"mouse highlighting is no scroll", "a\x1b[1;1;1;1;1T", "a|||"},
		{"margins", "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3;1H\n\nx", "a||x|d"},
		{"reverse index in margins", "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[2;1H\x1bMx", "a|x|b|d"},
		{"line operations outside of margins", "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[L\x1b[M", "a|b|c|d"},
		{"margins stop the cursor", "\x1b[2;3r\x1b[2;1H\x1b[9Ax\x1b[9By", "|x| y|"},
		{"outside they do not", "\x1b[2;3r\x1b[1;1H\x1b[9Bx\x1b[4;1H\x1b[9Ay", "|y|x|"},
		{"origin", "\x1b[2;3r\x1b[?6h\x1b[1;1Hx\x1b[9;9Hy", "|x|        y|"},
		{"bad margins", "\x1b[3;2rx", "x|||"},
		{"index, next line", "a\x1bDb\x1bEc", "a| b|c|"},
		{"save and restore", "ab\x1b7\x1b[3;3H\x1b8c", "abc|||"},
		{"save and restore, CSI", "ab\x1b[s\x1b[3;3H\x1b[uc", "abc|||"},
		{"1048", "ab\x1b[?1048h\x1b[3;3H\x1b[?1048lc", "abc|||"},
		{"pending wrap is saved", "0123456789\x1b7\x1b[3;3H\x1b8X", "0123456789|X||"},
		{"restore without save", "ab\x1b8c", "cb|||"},
		{"alternate 1049", "ab\x1b[?1049hxy\x1b[?1049lc", "abc|||"},
		{"alternate is clear", "ab\x1b[?1049hxy\x1b[?1049l\x1b[?1049hz", "  z|||"},
		{"alternate 47 keeps its text", "\x1b[?47hxy\x1b[?47l\x1b[?47hz", "xyz|||"},
		{"alternate 1047 is cleared on leaving", "\x1b[?1047hxy\x1b[?1047l\x1b[?47hz", "  z|||"},
		{"repeat", "a\x1b[3b", "aaaa|||"},
		{"repeat a wide one", "端\x1b[b", "端端|||"},
		{"repeat nothing", "\x1b[3b", "|||"},
		{"alignment", "\x1b#8\x1b[2;2H\x1b[2J", "|||"},
		{"alignment fills", "x\x1b#8", "EEEEEEEEEE|EEEEEEEEEE|EEEEEEEEEE|EEEEEEEEEE"},
		{"reset", "ab\x1b[2;3r\x1b[?1049hx\x1bcy", "y|||"},
		{"soft reset", "\x1b[2;3r\x1b[?6h\x1b[4h\x1b[!p\x1b[Hx", "x|||"},
		{"line drawing", "\x1b(0lqk\x1b(Bq", "┌─┐q|||"},
		{"line drawing in G1", "\x1b)0\x0ex\x0fx", "│x|||"},
		{"single shift", "\x1b*0\x1bNqq", "─q|||"},
		{"british", "\x1b(A#", "£|||"},
		{"LF is CR LF", "\x1b[20ha\nb", "a|b||"},
		{"control inside of a sequence", "ab\x1b[\r1Cx", "ax|||"},
		{"new sequence inside of one", "a\x1b[3\x1b[Cx", "a x|||"},
		{"CAN inside of a sequence", "a\x1b[3\x18Cx", "aCx|||"},
		{"unknown sequences", "a\x1b[3;4w\x1b[?9999h\x1b[>1q\x1b[=5z\x1b%G\x1b G\x1b[1 @b", "ab|||"},
		{"malformed sequences", "a\x1b[3?4mb\x1b[ 3mc", "abc|||"},
		{"private r, s, u", "ab\x1b[?2r\x1b[?1s\x1b[?uc", "abc|||"},
		{"huge parameters", "a\x1b[99999999999999999999Cx", "a        x|||"},
		{"many parameters", "a\x1b[" + strings.Repeat("1;", 100) + "mb", "ab|||"},
		{"endless sequence", "a\x1b[" + strings.Repeat("1", 10000) + "mb", "ab|||"},
		{"rune inside of a sequence", "a\x1b[3é", "aé|||"},
		{"DEL and NUL", "a\x7f\x00b", "ab|||"},

		{"strings", "a\x1bPq1;2\a\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e", "abcde|||"},
		{"XTGETTCAP", "a\x1bP+q544e\x1b\\b", "ab|||"},
		{"link", "\x1b]8;id=1;http://x/\x1b\\ab\x1b]8;;\x1b\\c", "abc|||"},
		{"0x9C does not end a title", "\x1b]0;✳ Claude Code\ax", "x|||"},
		{"CAN voids a title", "\x1b]0;no\x18x", "x|||"},
		{"ESC voids a title", "\x1b]0;no\x1b[Cx", " x|||"},
		{"endless title", "\x1b]0;" + strings.Repeat("x", 10000) + "\ab", "b|||"},

		{"invalid bytes", "a\xffb\xc0\xafc", "a\ufffdb\ufffd\ufffdc|||"},
		{"torn rune, then text", "a\xe2\x9cb", "a\ufffdb|||"},
		{"surrogate, too long, too big", "\xed\xa0\x80|\xf0\x80\x80\x80", "\ufffd\ufffd\ufffd|\ufffd\ufffd\ufffd\ufffd|||"},
		{"torn rune, then ESC", "a\xe2\x9c\x1b[Cb", "a\ufffd b|||"},
		{"C1 as a rune", "a\u009b31mb", "a31mb|||"},
		{"combining", "e\u0301x", "e\u0301x|||"},
		{"combining after a wide", "端\u0301x", "端\u0301x|||"},
		{"combining at the edge", "012345678e\u0301x", "012345678e\u0301|x||"},
		{"combining after a colour", "e\x1b[31m\u0301x", "e\u0301x|||"},
		{"combining with nothing", "\u0301x", "x|||"},
		{"ZWJ", "👩‍🔬\x1b[3Gx", "👩‍🔬x|||"},
		{"skin", "👍🏽\x1b[3Gx", "👍🏽x|||"},
		{"flags", "🇩🇪🇫🇷\x1b[5Gx", "🇩🇪🇫🇷x|||"},
		{"VS16 widens", "✳\ufe0fx\x1b[2Gy", " yx|||"},
		{"VS16 widens at the edge", "012345678✳\ufe0fx", "012345678|✳\ufe0fx||"},
		{"keycap", "1\ufe0f\u20e3\x1b[3Gx", "1\ufe0f\u20e3x|||"},
		{"Hangul from parts", "\u1112\u1161\u11ab\x1b[3Gx", "\u1112\u1161\u11abx|||"},
		{"zero-width without a cluster", "a\u200bb\ufeffc", "abc|||"},
		{"a heap of marks", "e" + strings.Repeat("\u0301", 1000) + "x", "e" + strings.Repeat("\u0301", 31) + "x|||"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(10, 4, 10)
			s.Write([]byte(c.feed))
			whole(t, s)
			if got := strings.Join(s.Lines(), "|"); got != c.want {
				t.Errorf("%q: got %q, want %q", c.feed, got, c.want)
			}
		})
	}
}

// TestStyles: what SGR makes of a cell.
func TestStyles(t *testing.T) {
	for _, c := range []struct {
		feed string
		want Style
	}{
		{"\x1b[m", Style{}},
		{"\x1b[1;2;3;5;7;8;9m", Style{Attr: Bold | Dim | Italic | Blink | Inverse | Hidden | Strike}},
		{"\x1b[1;2;3;4;5;7;8;9;53m\x1b[22;23;24;25;27;28;29;55m", Style{}},
		{"\x1b[4m", Style{Attr: Attr(0).underlined(1)}},
		{"\x1b[4:3m", Style{Attr: Attr(0).underlined(3)}},
		{"\x1b[4:3m\x1b[4:0m", Style{}},
		{"\x1b[21m", Style{Attr: Attr(0).underlined(2)}},
		{"\x1b[31;42m", Style{Fg: Palette(1), Bg: Palette(2)}},
		{"\x1b[91;102m", Style{Fg: Palette(9), Bg: Palette(10)}},
		{"\x1b[38;5;200;48;5;0m", Style{Fg: Palette(200), Bg: Palette(0)}},
		{"\x1b[38:5:200m", Style{Fg: Palette(200)}},
		{"\x1b[38;2;1;2;3;48;2;4;5;6;1m", Style{Fg: RGB(1, 2, 3), Bg: RGB(4, 5, 6), Attr: Bold}},
		{"\x1b[38:2:1:2:3;1m", Style{Fg: RGB(1, 2, 3), Attr: Bold}},
		{"\x1b[38:2::1:2:3;48:2::4:5:6m", Style{Fg: RGB(1, 2, 3), Bg: RGB(4, 5, 6)}},
		{"\x1b[58;5;1;31m", Style{Fg: Palette(1)}},
		{"\x1b[58:2::1:2:3;31m", Style{Fg: Palette(1)}},
		{"\x1b[31;42m\x1b[39;49m", Style{}},
		{"\x1b[31;38m", Style{Fg: Palette(1)}},
		{"\x1b[31;38;5m", Style{Fg: Palette(1)}},
		{"\x1b[1;;31m", Style{Fg: Palette(1)}},
		{"\x1b[>4;2m\x1b[?4m", Style{}},
	} {
		s := New(10, 2, 0)
		s.Write([]byte(c.feed + "x"))
		if d := cmp.Diff(Cell{"x", 1, c.want}, s.Row(0)[0]); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.feed, d)
		}
	}
}

// TestBackground: erased cells and new lines take the background, nothing else.
func TestBackground(t *testing.T) {
	blue := Style{Bg: Palette(4)}
	for _, feed := range []string{
		"\x1b[1;44m\x1b[2J", "\x1b[1;44m\x1b[K", "\x1b[1;44m\x1b[3X", "\x1b[1;44m\x1b[3@",
		"abc\r\x1b[1;44m\x1b[99P", "\x1b[1;44m\x1b[L", "\x1b[1;44m\x1b[M", "\x1b[1;44m\x1b[9S", "\x1b[1;44m\x1b[T",
	} {
		s := New(3, 1, 0)
		s.Write([]byte(feed))
		for x, c := range s.Row(0) {
			if c != (Cell{"", 1, blue}) {
				t.Errorf("%q: cell %d is %+v", feed, x, c)
			}
		}
	}
}
