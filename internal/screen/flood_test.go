package screen

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// deluge is lines, most of them plain, some of which must not be passed over.
func deluge(rnd *rand.Rand) []byte {
	pick := func(of []string) string { return of[rnd.IntN(len(of))] }
	var b []byte
	for range 50 + rnd.IntN(400) {
		for range rnd.IntN(5) {
			b = append(b, pick([]string{
				"a", "hello world", "0123456789abcdef", " ", "x\x1b[31m", "\x1b[0;44m", "\x1b[m", "\x1b[38:2::1:2:3m", "端", "é", "e\u0301", "\u0301",
				"👩‍🔬", "✳\ufe0f", "0123456789012345678901234567890123456789",
			})...)
		}
		if rnd.IntN(60) == 0 {
			b = append(b, pick([]string{
				"\t", "\b", "\a", "\r", "\x0e", "\x0f", "\xff", "\x7f", "\x1b[3b", "\x1b[A", "\x1b[2;4r", "\x1b[r", "\x1b[4h", "\x1b[4l", "\x1b[?7l", "\x1b[?7h",
				"\x1b[?1049h", "\x1b[?1049l", "\x1b[2J", "\x1b[3J", "\x1b]0;t\a", "\x1b7", "\x1b8", "\x1b(0", "\x1b(B", "\x1bM", "\x1b[H", "\x1b[20h", "\x1b[?5m",
			})...)
		}
		if rnd.IntN(80) == 0 {
			b = append(b, pick([]string{"\n", "\r\n\x1b[2b", "\r", "\n\r"})...)
			continue
		}
		b = append(b, "\r\n"...)
	}
	return b
}

// TestFlood compares floods that come at once, and are not drawn whole, with
// such that come in pieces, and are.
func TestFlood(t *testing.T) {
	passed := 0
	for seed := range uint64(*rounds) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		cols, rows, scrollback := 1+rnd.IntN(40), 1+rnd.IntN(6), rnd.IntN(12)
		one, pieces := New(cols, rows, scrollback), New(cols, rows, scrollback)
		for range 3 {
			data := deluge(rnd)
			one.Write(data)
			for rest := data; len(rest) > 0; {
				n := min(len(rest), 1+rnd.IntN(3)) // less than two lines
				pieces.Write(rest[:n])
				rest = rest[n:]
			}
			whole(t, one)
			same(t, fmt.Sprintf("seed %d: %dx%d, %d lines of scrollback: %q", seed, cols, rows, scrollback, data), stateOf(pieces), stateOf(one))
			if one.repeat != pieces.repeat || one.last != pieces.last || one.fill() != pieces.fill() || one.main.hist != pieces.main.hist {
				t.Fatalf("seed %d: repeats %q, last %q, want %q, %q", seed, one.repeat, one.last, pieces.repeat, pieces.last)
			}
		}
		if one.main.base != pieces.main.base { // rows that were not drawn were not turned over
			passed++
		}
	}
	if passed < *rounds/8 {
		t.Errorf("lines were passed over in %d floods of %d", passed, *rounds)
	}
}

func TestASCIIWord(t *testing.T) {
	for b := range 256 {
		for at := range 8 {
			word := []byte("~ ~ ~ ~ ")
			word[at] = byte(b)
			var w uint64
			for i, c := range word {
				w |= uint64(c) << (8 * i)
			}
			if want := b >= 0x20 && b < 0x7f; asciiWord(w) != want {
				t.Fatalf("%#x at %d", b, at)
			}
		}
	}
}

// BenchmarkFlood is what a flood of log lines costs in pieces of one size.
func BenchmarkFlood(b *testing.B) {
	data := feeds(8 << 20)
	for _, name := range []string{"log", "colour"} {
		for _, size := range []int{32 << 10, 256 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dk", name, size>>10), func(b *testing.B) {
				s := New(100, 30, 2000)
				b.SetBytes(int64(len(data[name])))
				for b.Loop() {
					for rest := data[name]; len(rest) > 0; {
						n := min(len(rest), size)
						s.Write(rest[:n])
						rest = rest[n:]
					}
				}
			})
		}
	}
}
