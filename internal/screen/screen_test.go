package screen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScrollback(t *testing.T) {
	s := New(10, 3, 4)
	for i := range 10 {
		fmt.Fprintf(s, "line %d\r\n", i)
	}
	if d := cmp.Diff([]string{"line 8", "line 9", ""}, s.Lines()); d != "" {
		t.Error(d)
	}
	if got := s.Scrolled(); got != 8 {
		t.Errorf("%d lines scrolled, want 8", got)
	}
	for n, want := range map[int]string{
		-1: "", 0: "", 1: "line 9", 3: "line 7,line 8,line 9",
		99: "line 4,line 5,line 6,line 7,line 8,line 9",
	} {
		if got := strings.Join(s.Tail(n), ","); got != want {
			t.Errorf("the last %d: got %q, want %q", n, got, want)
		}
	}
	s.Write([]byte("\x1b[2J"))
	if got := strings.Join(s.Tail(2), ","); got != "line 6,line 7" {
		t.Errorf("of a cleared screen: %q", got)
	}
	s.Write([]byte("\x1b[?1049hx\r\n\r\n\r\n\r\ny"))
	if got := strings.Join(s.Tail(9), ","); got != ",,y" {
		t.Errorf("of the alternate screen: %q", got)
	}
	s.Write([]byte("\x1b[?1049l\x1b[3J"))
	if got := s.Tail(9); len(got) != 0 || s.Scrolled() != 8 {
		t.Errorf("of a cleared scrollback: %q, %d scrolled", got, s.Scrolled())
	}
}

// TestMarginsFeedScrollback: a program that draws its own prompt below a
// scrolling region still leaves its text in the scrollback.
func TestMarginsFeedScrollback(t *testing.T) {
	s := New(10, 4, 10)
	s.Write([]byte("a\r\nb\r\nc\r\nprompt\x1b[1;3r\x1b[3;1H\r\nd\r\ne\x1b[r"))
	if d := cmp.Diff([]string{"a", "b", "c", "d", "e", "prompt"}, s.Tail(10)); d != "" {
		t.Error(d)
	}
	whole(t, s)
	s = New(10, 4, 10)
	s.Write([]byte("a\r\nb\r\nc\r\nd\x1b[2;4r\x1b[4;1H\n\n"))
	if s.Scrolled() != 0 {
		t.Error("a region below the top fed the scrollback")
	}
}

func TestWrapped(t *testing.T) {
	s := New(5, 4, 10)
	s.Write([]byte("abcdefg\r\nhello\r\nx"))
	var got []bool
	for y := range 4 {
		got = append(got, s.Wrapped(y))
	}
	if d := cmp.Diff([]bool{false, true, false, false}, got); d != "" {
		t.Error(d)
	}
	s.Write([]byte("\n")) // the wrapped row is the top one now
	if !s.Wrapped(0) {
		t.Error("the row that goes on from the scrollback does not say so")
	}
}

func TestRow(t *testing.T) {
	s := New(6, 1, 0)
	s.Write([]byte("\x1b[31me\u0301\x1b[m 端x"))
	want := []Cell{
		{"e\u0301", 1, Style{Fg: Palette(1)}}, {" ", 1, Style{}}, {"端", 2, Style{}}, {"", 0, Style{}}, {"x", 1, Style{}}, {"", 1, Style{}},
	}
	if d := cmp.Diff(want, s.Row(0)); d != "" {
		t.Error(d)
	}
}

func TestANSI(t *testing.T) {
	s := New(10, 3, 0)
	s.Write([]byte("a\x1b[1;31mb \x1b[m  \r\n\x1b[44m\x1b[K"))
	if got, want := s.ANSI(), "a\x1b[0;1;31mb\x1b[m\n\x1b[0;44m          \x1b[m\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVersion(t *testing.T) {
	s := New(10, 3, 0)
	for _, c := range []struct {
		feed    string
		changes bool
	}{
		{"a", true}, {"\a", false}, {"\x1b[c", false}, {"\x1b[31m", false}, {"\x1b[C", true}, {"\x1b[K", true},
		{"\x1b[?2004h", true}, {"\x1b[?2004h", false}, {"\x1b]0;t\a", true}, {"\x1b]0;t\a", false}, {"\x1b[?25l", true},
		{"\x1b[?1049h", true}, {"\x1b]8;;u\a", false}, {"\x1b", false}, {"[2", false}, {"J", true}, {"", false},
	} {
		before := s.Version()
		s.Write([]byte(c.feed))
		if got := s.Version() > before; got != c.changes {
			t.Errorf("%q: changed %v, want %v", c.feed, got, c.changes)
		}
	}
	before := s.Version()
	s.Resize(10, 3)
	if s.Version() != before {
		t.Error("the same size is a change")
	}
	s.Resize(9, 3)
	if s.Version() == before {
		t.Error("another size is no change")
	}
}

func TestResize(t *testing.T) {
	type size struct{ cols, rows int }
	for _, c := range []struct {
		name, feed string
		sizes      []size
		want       string // lines, then the cursor
		tail       string
	}{
		{"cut and widened", "abcdefghij", []size{{5, 4}, {10, 4}}, "abcde||| 4,0", "abcde"},
		{"wide cut in half", "abcd端", []size{{5, 4}}, "abcd||| 4,0", "abcd"},
		{"blank rows below go first", "a\r\nb", []size{{10, 2}}, "a|b 1,1", "a,b"},
		{"rows leave at the top", "1\r\n2\r\n3\r\n4", []size{{10, 2}}, "3|4 1,1", "1,2,3,4"},
		{"and come back", "1\r\n2\r\n3\r\n4", []size{{10, 3}, {10, 4}}, "1|2|3|4 1,3", "1,2,3,4"},
		{"what is below the cursor is kept as long as it can be", "1\r\n2\r\n3\r\n4\x1b[2;1H", []size{{10, 3}}, "2|3|4 0,0", "1,2,3,4"},
		{"then it is lost", "1\r\n2\r\n3\r\n4\x1b[1;1H", []size{{10, 2}}, "1|2 0,0", "1,2"},
		{"the alternate screen keeps its cursor", "\x1b[?1049h1\r\n2\r\n3\r\n4", []size{{10, 2}}, "3|4 1,1", "3,4"},
		{"the main screen behind it is whole", "1\r\n2\r\n3\r\n4\x1b[?1049hx", []size{{10, 2}, {10, 4}}, "| x|| 2,1", ", x"},
		{"one cell", "abc", []size{{1, 1}}, "a 0,0", "a"},
		{"nonsense", "abc", []size{{0, -5}}, "a 0,0", "a"},
		{"taller", "a", []size{{10, 6}}, "a||||| 1,0", "a"},
		{"pending wrap goes with the width", "0123456789", []size{{12, 4}}, "0123456789||| 9,0", "0123456789"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(10, 4, 10)
			s.Write([]byte(c.feed))
			for _, z := range c.sizes {
				s.Resize(z.cols, z.rows)
				whole(t, s)
			}
			x, y := s.Cursor()
			if got := fmt.Sprintf("%s %d,%d", strings.Join(s.Lines(), "|"), x, y); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := strings.Join(s.Tail(99), ","); got != c.tail {
				t.Errorf("the tail is %q, want %q", got, c.tail)
			}
		})
	}
	s := New(10, 4, 10)
	s.Write([]byte("1\r\n2\r\n3\r\n4\x1b[?1049hx"))
	s.Resize(10, 2)
	s.Write([]byte("\x1b[?1049ly"))
	if got := strings.Join(s.Lines(), "|"); got != "3|4y" {
		t.Errorf("the main screen after the alternate one: %q", got)
	}
}

// TestClusterTableIsBounded: texts that left the screen leave the table.
func TestClusterTableIsBounded(t *testing.T) {
	s := New(20, 5, 10)
	for i := range 30000 {
		fmt.Fprintf(s, "%c\u0301\u0302", '一'+rune(i%20000))
		if i%7 == 0 {
			s.Write([]byte("\r\n"))
		}
	}
	whole(t, s)
	if n := len(s.table); n > maxClusters {
		t.Errorf("%d clusters in the table of a screen with 300 cells", n)
	}
}

// TestSteadyState: feeding what was fed before allocates nothing.
func TestSteadyState(t *testing.T) {
	for name, data := range feeds(32 << 10) {
		s := New(100, 30, 100)
		for range 4 {
			s.Write(data)
		}
		if n := testing.AllocsPerRun(2, func() { s.Write(data) }); n > 1 { // the title may be a new one
			t.Errorf("%s: %v allocations for 32 KiB", name, n)
		}
	}
}
