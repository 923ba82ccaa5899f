package screen

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// whole checks what must hold for every screen at every moment.
func whole(t *testing.T, s *Screen) {
	t.Helper()
	if s.x < 0 || s.x >= s.cols || s.y < 0 || s.y >= s.rows {
		t.Fatalf("cursor %d,%d outside of %dx%d", s.x, s.y, s.cols, s.rows)
	}
	if s.wrapNext && s.x != s.cols-1 {
		t.Fatalf("about to wrap at column %d of %d", s.x, s.cols)
	}
	if s.top < 0 || s.top > s.bottom || s.bottom >= s.rows || len(s.tabs) != s.cols {
		t.Fatalf("margins %d–%d of %d rows, %d tabs", s.top, s.bottom, s.rows, len(s.tabs))
	}
	if len(s.replies) > maxReplies || len(s.notes) > maxNotes || len(s.seq) > maxString || len(s.titles) > maxTitles {
		t.Fatalf("%d bytes of answers, %d notes, %d bytes of a sequence, %d titles", len(s.replies), len(s.notes), len(s.seq), len(s.titles))
	}
	for _, g := range []*grid{s.main, s.alt} {
		seen := make(map[*row]bool)
		for y := -g.hist; y < g.rows; y++ {
			r := g.row(y)
			if seen[r] {
				t.Fatalf("row %d is in the grid twice", y)
			}
			seen[r] = true
			if y >= 0 && r.n > s.cols {
				t.Fatalf("row %d has %d cells of %d", y, r.n, s.cols)
			}
			for x := range r.n {
				c := r.cells[x]
				if c.wide() && (x+1 >= r.n || !r.cells[x+1].tail()) {
					t.Fatalf("wide cell at %d,%d without a tail", x, y)
				}
				if c.tail() && (x == 0 || !r.cells[x-1].wide()) {
					t.Fatalf("tail at %d,%d without a wide cell", x, y)
				}
				if (c.wide() || c.tail()) && !r.wide {
					t.Fatalf("row %d does not know of its wide cells", y)
				}
				if ch := c.char(); ch&clusterBit != 0 && s.cluster(ch) == "" {
					t.Fatalf("cell %d,%d holds a cluster that was freed", x, y)
				}
				if ch := c.char(); ch != 0 && ch < ' ' || ch >= 0x7f && ch < 0xa0 {
					t.Fatalf("control %#x in cell %d,%d", ch, x, y)
				}
			}
		}
	}
	if len(s.Lines()) != s.rows || len(s.Row(0)) != s.cols {
		t.Fatalf("%d lines of %d", len(s.Lines()), s.rows)
	}
}

var seeds = []string{
	"hello\r\nworld", "\x1b[31;1mred\x1b[0m", "端末e\u0301👩‍🔬🇩🇪✳️", "\xe2\x9c\x1b[\xffm", "\x1b[2;3r\x1b[?6h\x1b[99S\x1b[T\x1bM\x1bD",
	"\x1b]0;✳ title; x\a\x1b]99;i=1:d=0;a\x1b\\\x1b]99;i=1:p=body;b\x1b\\", "\x1b[4h端x\x1b[5@\x1b[3P\x1b[2X\x1b[L\x1b[M",
	"\x1b[?1049hx\x1b7\x1b[?47l\x1b8\x1b[?1047h\x1b[?1047l", "\x1b[b\x1b[9999b x\x1b[300b", "\x1b#8\x1bc\x1b[!p\x1b(0qqq\x0e\x0f",
	"\x1b[c\x1b[>c\x1b[6n\x1b[?6n\x1b[5n\x1b]10;?\a\x1b]4;1;?;2;?\x1b\\\x1b[?2026$p\x1b[4$p", "\x1b[3g\x1bH\t\x1b[Z\x1b[2I\b",
	"\x1b[44m\x1b[2J\x1b[K\x1b[1K\x1b[1J\x1b[3J", "\x1bP+q544e\x1b\\\x1b_x\x1b\\\x1b^y\x18z", "각가क्ष\u0903", "\x1b[38:2::1:2:3;4:3;58:5:1m\x1b[48;5;9mx",
}

// halves feeds data whole and torn, and repaints: no panic, whole screens, the
// same result for every split, and a repainted screen that is the same.
func halves(t *testing.T, data []byte, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	cols, rows := 1+rnd.IntN(20), 1+rnd.IntN(8)
	one, pieces := New(cols, rows, 20), New(cols, rows, 20)
	one.Write(data)
	whole(t, one)
	for rest := data; len(rest) > 0; {
		n := 1 + rnd.IntN(min(8, len(rest)))
		pieces.Write(rest[:n])
		rest = rest[n:]
	}
	same(t, "in pieces", stateOf(one), stateOf(pieces))
	if a, b := string(one.Repaint(20)), string(pieces.Repaint(20)); a != b {
		t.Fatalf("repaint of the whole\n%q\nof the pieces\n%q", a, b)
	}
	other := repainted(one)
	whole(t, other)
	same(t, fmt.Sprintf("%dx%d repainted by %q", cols, rows, one.Repaint(20)), shown(one), shown(other))
}

// resizing changes the size at any moment.
func resizing(t *testing.T, data []byte, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := New(1+rnd.IntN(20), 1+rnd.IntN(8), rnd.IntN(5))
	for rest := data; len(rest) > 0; {
		n := 1 + rnd.IntN(min(64, len(rest)))
		s.Write(rest[:n])
		rest = rest[n:]
		s.Resize(rnd.IntN(24), rnd.IntN(10))
		whole(t, s)
	}
	s.Tail(100)
	s.ANSI()
	other := repainted(s)
	whole(t, other)
	a, b := shown(s), shown(other)
	a.History, b.History = nil, nil // lines of another width wrap now
	a.Wraps[0], b.Wraps[0] = false, false
	same(t, "repainted", a, b)
}

func FuzzWrite(f *testing.F) {
	seedAll(f)
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		halves(t, data, seed)
		resizing(t, data, seed)
	})
}

func seedAll(f *testing.F) {
	for i, s := range seeds {
		f.Add([]byte(s), uint64(i))
	}
	f.Add([]byte(strings.Join(seeds, "")), uint64(99))
}

// TestRandomSequences does what fuzzing seldom gets to: long runs of sequences
// that mean something.
func TestRandomSequences(t *testing.T) {
	for seed := range uint64(*rounds) {
		data := sentence(rand.New(rand.NewPCG(seed, 2)))
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Logf("%q", data)
			halves(t, data, seed)
			resizing(t, data, seed)
		})
		if !ok {
			return
		}
	}
}

var rounds = flag.Int("rounds", 500, "how many random sentences are tried")

// sentence is a random stream of text, controls and sequences.
func sentence(rnd *rand.Rand) []byte {
	pick := func(of []string) string { return of[rnd.IntN(len(of))] }
	var b []byte
	for range rnd.IntN(60) {
		switch rnd.IntN(6) {
		case 0, 1:
			b = append(b, pick([]string{
				"a", "bc", "hello world", " ", "端", "末端", "é", "e\u0301", "\u0301", "👩‍🔬", "👩", "\u200d", "🔬", "🇩", "🇪",
				"✳", "\ufe0f", "1\ufe0f\u20e3", "\u0903", "각", "ᄀ", "ᅡ", "ᆨ", "क", "\u094d", "ष", "\xff", "\xe2\x9c", "\u00ad", "\u0600",
				"qlx", "\U0010ffff", "\u2028", "👍🏽", "\xc2\x9b5m", "กำ",
			})...)
		case 2:
			b = append(b, pick([]string{"\r", "\n", "\r\n", "\b", "\t", "\x0e", "\x0f", "\a", "\v", "\x18", "\x1a", "\x00", "\x7f"})...)
		case 3:
			b = append(b, pick([]string{
				"\x1b7", "\x1b8", "\x1bD", "\x1bE", "\x1bH", "\x1bM", "\x1bN", "\x1bO", "\x1bn", "\x1bo", "\x1b=", "\x1b>", "\x1b(0", "\x1b)0",
				"\x1b(B", "\x1b*A", "\x1b#8", "\x1b]0;t✳;\a", "\x1b]9;n\x1b\\", "\x1bPx\x1b\\", "\x1b]8;;u\x1b\\", "\x1b]x\x1b[m", "\x1b", "\x1b[", "\x1b]0;",
			})...)
		default:
			b = append(b, "\x1b["...)
			b = append(b, pick([]string{"", "", "", "", "?", "?", ">", "=", "<"})...)
			for i := range rnd.IntN(4) {
				if i > 0 {
					b = append(b, pick([]string{";", ";", ":"})...)
				}
				b = append(b, pick([]string{
					"", "0", "1", "2", "3", "4", "5", "7", "12", "20", "38", "48", "44", "25", "6", "1049", "1047", "47", "1048", "2004", "2026", "99999999999",
				})...)
			}
			b = append(b, pick([]string{
				"m", "m", "H", "H", "A", "B", "C", "D", "E", "F", "G", "d", "a", "e", "I", "Z", "J", "K", "X", "@", "P", "L", "M", "S", "T",
				"b", "c", "g", "h", "h", "h", "l", "n", "r", "r", "s", "u", "t", " q", "!p", "$p", "x\x1b[3", "\r1C",
			})...)
		}
	}
	return b
}
