package cast

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// valid is what a reader gets for text: U+FFFD for each byte that is no UTF-8.
func valid(s string) string { return string([]rune(s)) }

func checkEscaped(t *testing.T, text []byte) {
	t.Helper()
	got := appendEscaped([]byte(`"`), text)
	got = append(got, '"')
	if !utf8.Valid(got) {
		t.Fatalf("%.200q becomes %.200q, which is no UTF-8", text, got)
	}
	var back string
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatalf("%.200q becomes %.200q: %v", text, got, err)
	}
	if want := valid(string(text)); back != want {
		t.Fatalf("%.200q becomes %.200q and is read as %.200q, want %.200q", text, got, back, want)
	}
}

func TestEscape(t *testing.T) {
	for b := range 256 {
		for at := range 20 { // in each place of a word
			text := []byte(strings.Repeat("x", 24))
			text[at] = byte(b)
			checkEscaped(t, text)
			checkEscaped(t, text[:at+1])
		}
	}
	for _, text := range []string{
		"", "plain", "\"\\\"", "\x1b[31mred\x1b[0m\r\n", "✳ Claude Code", "日本語", "👨‍👩‍👧", "\u2028\u2029\u0085\u0000\u007f",
		"\xe2\x9c", "\xff\xfe", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80",
		strings.Repeat("→", 5000), strings.Repeat("x→", 5000), strings.Repeat("\x80", 9000), strings.Repeat("\x1b", 9000),
	} {
		checkEscaped(t, []byte(text))
	}
	if got := string(appendEscaped(nil, []byte("a\x1b\"\\\r\n\t\x00é"))); got != `a\u001b\"\\\r\n\t\u0000é` {
		t.Errorf("escaped: %s", got)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add([]byte("\x1b[1;31mhello\x1b[0m \"w\\orld\" ✳ \xe2\x9c\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		checkEscaped(t, text)
		checkEscaped(t, append(bytes.Repeat([]byte("x"), 4090), text...)) // over a block's border
	})
}

// However the bytes are split, the text is the same, and no event has a part of
// a rune.
func TestTailsAreCarried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"a", "é", "→", "🙂", "\xe2", "\x9c", "\xf0\x9f", "\x80", "\xff", "\xed\xa0", "\xc3",
		})).Draw(t, "text"), ""))
		var carry tail
		var got strings.Builder
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, min(5, len(rest))).Draw(t, "piece")
			head, body := carry.join(rest[:n])
			got.WriteString(valid(string(head)))
			got.WriteString(valid(string(body)))
			rest = rest[n:]
		}
		got.WriteString(valid(string(carry.take())))
		if want := valid(string(text)); got.String() != want {
			t.Fatalf("%q is recorded as %q, want %q", text, got.String(), want)
		}
	})
}

func TestSequence(t *testing.T) {
	for text, settled := range map[string]bool{
		"":                             true,
		"plain":                        true,
		"\x1b":                         false,
		"\x1b[":                        false,
		"\x1b[38;5;":                   false,
		"\x1b[38;5;1m":                 true,
		"\x1b[31mred":                  true,
		"\x1b(":                        false,
		"\x1b(B":                       true,
		"\x1b7":                        true,
		"\x1b]0;title":                 false,
		"\x1b]0;title\x07":             true,
		"\x1b]0;title\x1b":             false,
		"\x1b]0;title\x1b\\":           true,
		"\x1b]0;✳ title\x07 more":      true,
		"\x1bP1$r0m\x1b\\text":         true,
		"\x1b]0;one\x07\x1b]0;two":     false,
		"\x1b[38\x18text":              true,
		"\x1b_Gsome\npayload":          false,
		"x\x1b[?2026h\x1b[H\x1b[?2026": false,
	} {
		for split := range len(text) + 1 {
			var s sequence
			s.feed([]byte(text[:split]))
			s.feed([]byte(text[split:]))
			if s.settled() != settled {
				t.Errorf("%q split at %d: settled is %v", text, split, s.settled())
			}
		}
	}
}

func BenchmarkEscape(b *testing.B) {
	for name, text := range samples() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var dst []byte
			for b.Loop() {
				dst = appendEscaped(dst[:0], text)
			}
		})
	}
}

// samples are 32 KiB of what agents and shells show.
func samples() map[string][]byte {
	fill := func(one string) []byte { return []byte(strings.Repeat(one, eventSize/len(one)+1)[:eventSize]) }
	return map[string][]byte{
		"log":    fill("2026-11-20 14:54:18 INFO the request was answered in 12 ms by worker 3\r\n"),
		"colour": fill("\x1b[01;34msource\x1b[0m  \x1b[01;32mrun.sh\x1b[0m  README.md  go.mod\r\n"),
		"screen": fill("\x1b[H\x1b[2K\x1b[38;5;174m✻\x1b[39m \x1b[38;5;174mWrangling…\x1b[39m \x1b[2m(7s · ↓ 38 tokens)\x1b[22m\x1b[1B\r"),
		"cjk":    fill("日本語のテキスト、漢字と仮名。\r\n"),
		"lines":  fill("y\r\n"),
	}
}
