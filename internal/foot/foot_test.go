package foot

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"github.com/agentteammail/atm/ptyrun/screen"
)

// terminal is a foot on a screen.
type terminal struct {
	*screen.Screen
	*Foot
}

func newTerminal(t *testing.T, cols, rows int) *terminal {
	t.Helper()
	s := screen.New(cols, rows, 1000)
	return &terminal{s, New(s, cols)}
}

func (t *terminal) types(s string) []string {
	entered, _, _ := t.Type([]byte(s))
	return entered
}

// all is what stands on the screen and above it.
func (t *terminal) all() string { return strings.Join(t.Tail(1000), "\n") }

func TestKeys(t *testing.T) {
	for name, c := range map[string]struct{ typed, want string }{
		"plain":          {"hello\r", "hello"},
		"left and right": {"ad\x1b[Dbc\x1b[C\x1b[De\x1b[C!\r", "abced!"},
		"rubout":         {"世界\x7f\x7fx\x7f\r", ""},
		"a cluster":      {"ae\u0301👩‍👩‍👧\x7f\x7f\r", "a"},
		"an accent late": {"e\u0301\x7fx\r", "x"},
		"home and end":   {"b\x01a\x05c\x1b[H_\x1b[F_\r", "_abc_"},
		"words":          {"one two  three\x17four\x1bb\x1bbX\r", "one Xtwo  four"},
		"clear":          {"abc\x15x\x02\x0by\r", "y"},
		"delete":         {"abc\x01\x04\x1b[3~\r", "c"},
		"cancel":         {"abc\x03d\r", "d"},
		"a paste":        {"a\x1b[200~b\rc\r\nd\te\x03\x1b[201~f\r", "ab\nc\nd\tef"},
		"unknown keys":   {"a\x1b[15~\x1bOPb\x1b[1;2Zc\r", "abc"},
		"not UTF-8":      {"a\xffb\r", "a\ufffdb"},
		"C1 and bidi":    {"a\u009bb\r", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			whole := newTerminal(t, 40, 6).types(c.typed)
			if len(whole) != 1 || whole[0] != c.want {
				t.Errorf("%q, not %q", whole, c.want)
			}
			one := newTerminal(t, 40, 6)
			var got []string
			for i := range len(c.typed) {
				got = append(got, one.types(c.typed[i:i+1])...)
			}
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("byte by byte %q, not %q", got, c.want)
			}
		})
	}
}

func TestPast(t *testing.T) {
	f := newTerminal(t, 40, 6)
	f.types("one\rtwo\r")
	if got := f.types("draft\x1b[A\x1b[A\x1b[A\r"); len(got) != 1 || got[0] != "one" {
		t.Errorf("%q", got)
	}
	if got := f.types("draft\x1b[A\x1b[B!\r"); len(got) != 1 || got[0] != "draft!" {
		t.Errorf("%q", got)
	}
}

func TestLeave(t *testing.T) {
	for _, keys := range []string{"\x04", "\x03", "abc\x03\x03", "a\x7f\x04"} {
		if _, leave, _ := newTerminal(t, 40, 6).Type([]byte(keys)); !leave {
			t.Errorf("%q does not leave", keys)
		}
	}
	if _, leave, _ := newTerminal(t, 40, 6).Type([]byte("abc\x04\x03")); leave {
		t.Error("left with something typed")
	}
}

// What is printed comes above what is typed, which stays.
func TestAbove(t *testing.T) {
	f := newTerminal(t, 20, 5)
	f.Status("[bob idle]")
	f.types("half a 世")
	f.Print("first line")
	f.Print("宽字符宽字符宽字符宽字符宽字符 wraps\nthird")
	f.Status("[bob busy, with much to say about it]")
	want := "first line\n宽字符宽字符宽字符宽\n字符宽字符 wraps\nthird\n[bob busy, with mu…\n> half a 世"
	if got := f.all(); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	if x, _ := f.Cursor(); x != len("> half a ")+2 {
		t.Errorf("the cursor is in column %d", x)
	}
	f.End()
	if got := f.all(); !strings.HasSuffix(got, "third") {
		t.Errorf("left behind:\n%s", got)
	}
}

// A line that is longer than the row is seen around the cursor.
func TestWindow(t *testing.T) {
	f := newTerminal(t, 20, 4)
	f.types("0123456789abcdefghijklmnopqrstuvwxyz")
	if got := f.all(); got != "> …lmnopqrstuvwxyz" {
		t.Errorf("%q", got)
	}
	f.types("\x01")
	if got := f.all(); got != "> 0123456789abcdefg" {
		t.Errorf("%q", got)
	}
	f.types(strings.Repeat("\x1b[C", 20) + "\x1b[200~\n\x1b[201~")
	if x, y := f.Cursor(); x >= 20 || y != 0 || !strings.Contains(f.all(), "ij⏎") {
		t.Errorf("%d,%d %q", x, y, f.all())
	}
}

// Whatever is typed, printed and resized, the foot is in its two rows and the
// cursor where it belongs, and nothing that was printed is lost.
func TestAnything(t *testing.T) {
	pieces := []string{"a", "word ", "世界", "é", "e\u0301", "👩‍👩‍👧", "\x1b[D", "\x1b[C", "\x7f", "\x01", "\x05", "\x17", "\x1b[200~x\ny\x1b[201~", "\x1b[A", "\x1b", "\xe4", "\t", "ab\r"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		cols := 20 + r.IntN(40)
		f := newTerminal(t, cols, 30)
		f.Status("[bob idle]")
		printed := 0
		for range 60 {
			switch r.IntN(8) {
			case 0:
				printed++
				f.Print("out " + strings.Repeat("世", r.IntN(30)))
			case 1: // wider only: what a narrower one does to a row is its own
				cols += r.IntN(3)
				f.Screen.Resize(cols, 30)
				f.Foot.Resize(cols)
			default:
				f.types(pieces[r.IntN(len(pieces))])
			}
			lines := f.Tail(400)
			if got := lines[max(0, len(lines)-2)]; got != "[bob idle]" {
				t.Fatalf("seed %d: the row above is %q in\n%s", seed, got, f.all())
			}
			row := lines[len(lines)-1]
			if !strings.HasPrefix(row, ">") || displaywidth.String(row) >= cols || !utf8.ValidString(row) {
				t.Fatalf("seed %d: the row is %q", seed, row)
			}
			_, at := f.window(cols - 1 - len(mark))
			if x, _ := f.Cursor(); x != len(mark)+at {
				t.Fatalf("seed %d: the cursor is in column %d, not %d", seed, x, len(mark)+at)
			}
		}
		if n := strings.Count(f.all(), "out"); n != printed {
			t.Fatalf("seed %d: %d of %d stand there", seed, n, printed)
		}
	}
}
