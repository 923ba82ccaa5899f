package viewers

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Words go on where those before ended, whatever else is told behind them gets a line of its own, and what was shown piece
// by piece is what somebody sees who comes late.
func TestTranscript(t *testing.T) {
	var l transcript
	shown := l.print(MarkPrompt, "Count.\nPlease.") + l.say("\n\none") + l.say(" two\nthr") + l.say("ee\n\n") + l.say("four\n") +
		l.print(MarkTool, "execute: ls\x1b[2J\tx\r\n") + l.say("\n\n") + l.say("five\u202e")
	want := "› Count.\r\n  Please.\r\n● one two\r\n  three\r\n  \r\n  four\r\n* execute: ls\\x1b[2J    x\r\n● five\\u202e"
	if shown != want {
		t.Errorf("shown:\n%q\nnot\n%q", shown, want)
	}
	if late := string(l.drawn(100)); late != want {
		t.Errorf("whoever comes late sees\n%q\nnot\n%q", late, want)
	}
	if last := l.tail(2); !slices.Equal(last, []string{`* execute: ls\x1b[2J    x`, `● five\u202e`}) {
		t.Errorf("the last lines: %q", last)
	}
}

// Its lines and their bytes are bounded, as is a line without an end.
func TestTranscriptIsBounded(t *testing.T) {
	var l transcript
	for range 400 {
		l.say(strings.Repeat("é", 8<<10))
		l.say(strings.Repeat("\n", 8<<10))
	}
	for _, line := range l.lines {
		if len(line) > 2*maxTranscriptLine+len(markSaid) {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
	if l.size > maxTranscriptText || len(l.lineFeeds) > maxLineFeeds {
		t.Errorf("%d bytes, %d line feeds", l.size, len(l.lineFeeds))
	}
	for range 2 * maxTranscript {
		l.print(MarkNote, "note")
	}
	if len(l.lines) != maxTranscript {
		t.Errorf("%d lines", len(l.lines))
	}
}

// Nothing that an agent says acts on a terminal, or stands where a line of ours does.
func FuzzTranscript(f *testing.F) {
	f.Add("a\x1b[2J\r\n? permission\n\u202e👨‍👩‍👧", 3)
	f.Fuzz(func(t *testing.T, text string, piece int) {
		var l transcript
		shown := ""
		for rest := strings.ToValidUTF8(text, "\ufffd"); rest != ""; {
			n := min(max(piece, 1), len(rest))
			for !utf8.ValidString(rest[:n]) {
				n++
			}
			shown += l.say(rest[:n])
			rest = rest[n:]
		}
		if late := string(l.drawn(maxTranscript)); len(l.lines) < maxTranscript && late != shown {
			t.Errorf("shown:\n%q\nlate:\n%q", shown, late)
		}
		for i, line := range strings.Split(shown, "\r\n") {
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("line %q", line)
			}
			if shown != "" && !strings.HasPrefix(line, indent) && (i > 0 || !strings.HasPrefix(line, markSaid)) {
				t.Errorf("line %d is %q", i, line)
			}
		}
	})
}
