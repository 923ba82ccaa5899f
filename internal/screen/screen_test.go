package screen

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/testround"
)

// captures returns what real programs wrote to a terminal of 100x30, by name.
func captures(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../../testdata/screens/*.bin")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	all := make(map[string][]byte)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".bin")] = data
	}
	return all
}

// state is everything that a driver or a viewer can see.
type state struct {
	Lines, History []string
	Cells          [][]Cell
	X, Y           int
	Title          string
	Modes          Modes
}

func stateOf(s *Screen) state {
	st := state{Lines: s.Lines(), Title: s.Title(), Modes: s.Modes()}
	st.X, st.Y = s.Cursor()
	for y := range s.rows {
		st.Cells = append(st.Cells, s.Row(y))
	}
	for y := -s.History(); y < 0; y++ {
		st.History = append(st.History, s.Line(y))
	}
	return st
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if reflect.DeepEqual(want, got) { // cmp.Diff of a screen takes forty times as long
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

// written writes data in pieces of the sizes that next returns.
func written(data []byte, next func() int) *Screen {
	s := New(100, 30, 500)
	for len(data) > 0 {
		n := min(next(), len(data))
		s.Write(data[:n])
		data = data[n:]
	}
	return s
}

// Screens of real agents are reproduced, however the bytes are split.
func TestCaptures(t *testing.T) {
	t.Parallel()
	for name, data := range captures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(filepath.Join("../../testdata/screens", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			whole := written(data, func() int { return len(data) })
			same(t, "the screen", string(want), strings.TrimRight(strings.Join(whole.Lines(), "\n"), "\n")+"\n")
			step := 5
			if testround.IsLong {
				step = 1
			}
			same(t, "in small pieces", stateOf(whole), stateOf(written(data, func() int { return step })))
			rnd := rand.New(rand.NewPCG(1, 2))
			same(t, "in pieces", stateOf(whole), stateOf(written(data, func() int { return 1 + rnd.IntN(97) })))
		})
	}
}

// A viewer that joins later sees the same screen.
func TestRepaint(t *testing.T) {
	t.Parallel()
	feeds := captures(t)
	feeds["scrollback"] = []byte("1\r\n2\r\n3\x1b[31mred\r\n" + strings.Repeat("x\r\n", 40) + "end")
	feeds["modes"] = []byte("\x1b[?2004h\x1b[?1h\x1b]2;a; ✳ b\a\x1b[?25l\x1b[7;9Hx")
	for name, data := range feeds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := written(data, func() int { return 512 })
			other := New(100, 30, 500)
			other.Write([]byte("left over\x1b[5;9r\x1b[?6h\x1b[31m"))
			other.Write(s.Repaint(500))
			a, b := stateOf(s), stateOf(other)
			same(t, "lines", a.Lines, b.Lines)
			same(t, "title, modes, cursor", []any{a.Title, a.Modes, a.X, a.Y}, []any{b.Title, b.Modes, b.X, b.Y})
			if !a.Modes.Alt {
				same(t, "scrollback", a.History, b.History[max(0, len(b.History)-len(a.History)):])
			}
		})
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for feed, want := range map[string][3]string{ // text, title, replies
		"a\x1b]0;✳ Claude; x\ab":           {"ab", "✳ Claude; x", ""},
		"a\x1b]2;t\x1b\\b":                 {"ab", "t", ""},
		"a\x1bP+q544e\x1b\\b\x1b_x\x1b\\c": {"abc", "", ""},
		"a\x1b]0;broken\x1b[31mb":          {"ab", "", ""},
		"a\x1b]0;x\x18b":                   {"ab", "", ""},
		"\x1b]10;?\a\x1b]11;?\a":           {"", "", "\x1b]10;rgb:d0d0/d0d0/d0d0\a\x1b]11;rgb:0000/0000/0000\a"},
		"ab\x1b[6n\x1b[c":                  {"ab", "", "\x1b[1;3R\x1b[?62;22c"},
		"\x1b[?2026$p\x1b[?2048h":          {"", "", "\x1b[?2026;0$y"},
		"é\xe4\xb8\r\n端":                   {"é\ufffd\n端", "", ""},
		"one\r\ntwo\x1b[2J":                {"", "", ""},
		"one\r\ntwo\x1b[3J":                {"one\ntwo", "", ""},
		"ab\x1b[scd\x1b[ue":                {"abed", "", ""},
	} {
		for _, size := range []int{1, 1000} {
			s := written([]byte(feed), func() int { return size })
			got := [3]string{strings.TrimRight(strings.Join(s.Lines(), "\n"), "\n"), s.Title(), string(s.Replies())}
			same(t, fmt.Sprintf("%q", feed), want, got)
		}
	}
}

// The state of a progress bar is kept, and nothing else of the sequence.
func TestProgress(t *testing.T) {
	t.Parallel()
	for feed, want := range map[string]Progress{
		"x": "", "\x1b]9;4;0\a": "none", "\x1b]9;4;1;50\x1b\\": "normal", "\x1b]9;4;2;100\a": "error", "\x1b]9;4;3;;\a": "indeterminate", "\x1b]9;4;4\a": "paused",
		"\x1b]9;4;3\a\x1b]9;4;5\a": "indeterminate", "\x1b]9;4;3\a\x1b]9;4;0\x18": "indeterminate", "\x1b]9;4\a": "", "\x1b]9;4;\a": "", "\x1b]9;4;1;5000\a": "",
		"\x1b]9;4;33\a": "", "\x1b]9;It is done\a": "", "\x1b]9;4;1;" + strings.Repeat("5", 1<<20) + "\a": "",
	} {
		for _, size := range []int{1 + len(feed)>>12, 1 << 21} {
			s := written([]byte(feed), func() int { return size })
			if s.Progress() != want {
				t.Errorf("%.40q: %q", feed, s.Progress())
			}
		}
	}
}

// A program that scrolls in the alternate screen all day takes no memory: nobody can see those lines again.
func TestAlternateScrolls(t *testing.T) {
	s := New(120, 30, 500)
	s.Write([]byte("main\r\n\x1b[?1049h"))
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	for i := range 2000 {
		fmt.Fprintf(s, "\x1b[30;1H\n%d%s", i, strings.Repeat("x", 100))
	}
	if more := int(inUse()) - int(before); more > 4<<20 {
		t.Errorf("%d bytes more", more)
	}
	if !strings.HasPrefix(s.Line(29), "1999x") {
		t.Errorf("the last line is %q", s.Line(29))
	}
	s.Write([]byte("\x1b[?1049l"))
	same(t, "line", "main", s.Line(0))
}

// When a screen gets lower the cursor's line stays, and the first lines are in the scrollback.
func TestLower(t *testing.T) {
	s := New(10, 5, 10)
	s.Write([]byte("1\r\n2\r\n3\r\n4 abc"))
	s.Resize(10, 2)
	s.Write([]byte("!"))
	if got := strings.Join(s.Tail(9), ","); got != "1,2,3,4 abc!" {
		t.Error(got)
	}
}

// No number in a control sequence costs more than a screenful, however it is written.
func TestCountsAreClipped(t *testing.T) {
	t.Parallel()
	full := strings.Repeat(strings.Repeat("A", 20)+"\n", 4) + "A" // and one line more has scrolled out
	lines := "1\r\n2\r\n3\r\n4\r\n5"
	const most = "999999999"
	for feed, want := range map[string]string{
		"A\x1b[" + most + "b":                                   full,
		"A\x1b[" + most + ";1b":                                 full,
		"A\x1b[" + most + ":3b":                                 full,
		"A\x1b[0000" + most + "b":                               full,
		"A\x1b[18446744073709551" + most + "b":                  "A?", // it overflows: any count will do
		"A\x1b[2147483646b":                                     full,
		"A\x1b[2147483647b":                                     "AA", // the library's word for "no number"
		"A\x1b[b":                                               "AA",
		"A\x1b[0b":                                              "A",
		"A\x1b[3bB":                                             "AAAAB",
		"A\x1b[" + strings.Repeat(most+";", 99) + "b":           full,
		"A\x9b" + most + "b":                                    "A\ufffd" + most + "b", // 8-bit controls are no controls in UTF-8
		"A\u009b" + most + "b":                                  "A" + most + "b",
		"A\x1b[" + most + "IB":                                  "A                  B",
		"A\x1b[" + most + "ZB":                                  "B",
		lines + "\x1b[1;" + most + "r\x1b[5;1H\n6":              "2\n3\n4\n5\n6", // as without a region
		lines + "\x1b[1;" + most + "r\x1b[" + most + "L":        "",
		lines + "\x1b[2;" + most + "r\x1b[2H\x1b[" + most + "M": "1",
		lines + "\x1b[" + most + "S":                            "",
		lines + "\x1b[" + most + "T":                            "",
		"AB\x1b[H\x1b[" + most + "@":                            "",
		"AB\x1b[H\x1b[" + most + "P":                            "",
		"AB\x1b[H\x1b[" + most + "X":                            "",
		"AB\x1b[" + most + "D\x1b[" + most + "AC":               "CB",
		"AB\x1b[" + most + ";" + most + "HC":                    "AB\n\n\n\n                   C",
		"AB\x1b[" + most + "a\x1b[" + most + "eC":               "AB\n\n\n\n                   C",
		"AB\x1b[?69h\x1b[1;" + most + "s\x1b[LC":                "C\nAB",
		"AB\x1bPq!" + most + "~\x1b\\C":                         "ABC",
		"AB\x1b[8;" + most + ";" + most + "tC":                  "ABC",
		"AB\x1b[>" + most + "u\x1b[" + most + "gC":              "ABC",
	} {
		for _, size := range []int{1, 7, 1000} {
			s := New(20, 5, 50)
			for piece := range slices.Chunk([]byte(feed), size) {
				s.Write(piece)
			}
			got := strings.TrimRight(strings.Join(s.Lines(), "\n"), "\n")
			if want == "A?" && got != "" && strings.Trim(got, "A\n") == "" {
				continue
			}
			same(t, fmt.Sprintf("%q in pieces of %d", feed, size), want, got)
		}
	}
}

// A panic of the emulator blanks the screen, and what is drawn after it is seen.
func TestLost(t *testing.T) {
	t.Parallel()
	s := New(20, 5, 10)
	s.Write([]byte("\x1b[?1049h\x1b[?2004hx"))
	func() {
		defer s.recover()
		panic("index out of range")
	}()
	if m := s.Modes(); !m.Alt || !m.Paste {
		t.Errorf("modes %+v", m)
	}
	s.Write([]byte("again"))
	same(t, "line", "again", s.Line(0))
}

// Nothing that a program writes, and no resize, blocks, panics, or makes incomplete cells.
func FuzzWrite(f *testing.F) {
	for i, seed := range []string{
		"hello\r\nworld", "\x1b[31;1mred\x1b[0m", "端末e\u0301👩‍🔬🇩🇪✳️", "\xe2\x9c\x1b[\xffm", "\x1b[2;3r\x1b[?6h\x1b[99S\x1b[T\x1bM\x1bD",
		"\x1b[2;99999r\x1b[99999LA\x1b[99999999b\x1b[99999I\x1b[99999Z\x1b[?69h\x1b[3;99999s\x1b[99999T", "\x1b[?1049hx\x1b7\x1b[?47l\x1b8", "\x1b[b\x1b[9999b x\x1b[300b", "\x1b[c\x1b[>c\x1b[6n\x1b[?6n\x1b[5n\x1b[4$p\x1b[?2048h", "\x1b[3g\x1bH\t\x1b[Z\x1b[2I\b",
	} {
		f.Add([]byte(seed), uint64(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		rnd, began := rand.New(rand.NewPCG(seed, 1)), time.Now()
		s := New(1+rnd.IntN(20), 1+rnd.IntN(8), rnd.IntN(5))
		for rest := data; len(rest) > 0; {
			n := min(1+rnd.IntN(64), len(rest))
			s.Write(rest[:n])
			rest = rest[n:]
			if rnd.IntN(4) == 0 {
				s.Resize(rnd.IntN(24), rnd.IntN(10))
			}
			if x, y := s.Cursor(); x < 0 || x >= s.cols || y < 0 || y >= s.rows {
				t.Fatalf("cursor %d,%d outside of %dx%d", x, y, s.cols, s.rows)
			}
			if len(s.Lines()) != s.rows || len(s.Row(0)) != s.cols {
				t.Fatalf("%d lines, %d cells", len(s.Lines()), len(s.Row(0)))
			}
		}
		if took := time.Since(began); took > 5*time.Second+time.Duration(len(data))*time.Millisecond {
			t.Fatalf("%d bytes took %v", len(data), took)
		}
		s.Tail(100)
		New(s.cols, s.rows, 5).Write(s.Repaint(5))
	})
}

// A character with U+FE0E is the same however the bytes are split.
func TestTextPresentation(t *testing.T) {
	data := []byte("\u25c6\ufe0e x")
	for size := 1; size <= len(data); size++ {
		s := written(data, func() int { return size })
		if got := s.Lines()[0]; strings.TrimRight(got, " ") != "\u25c6 x" {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

// Joined characters that are written at once stay joined, wherever in a long output they stand.
func TestJoinedAnywhere(t *testing.T) {
	const family = "👩‍👩‍👧"
	for n := piece - 30; n < piece+2; n++ {
		s := New(40, 3, 0)
		s.Write([]byte(strings.Repeat("\x1b[m", n/3) + strings.Repeat("\r", n%3) + family + "."))
		if got := strings.TrimRight(s.Lines()[0], " "); got != family+"." {
			t.Fatalf("%d: %q", n, got)
		}
	}
}
