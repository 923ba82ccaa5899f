//go:build linux || darwin

package acp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/mailbox/letter"
	emulator "github.com/agentteammail/atm/ptyrun/screen"
)

func drawn(cols, rows int, frames ...[]byte) string {
	s := emulator.New(cols, rows, 500)
	for _, f := range frames {
		s.Write(f)
	}
	withoutMarks := func(r rune) rune { // the emulator loses some at the edge
		if unicode.Is(unicode.M, r) || r != '\n' && letter.IsHidden(r) {
			return -1
		}
		return r
	}
	return strings.TrimRight(strings.Map(withoutMarks, strings.Join(s.Tail(500), "\n")), "\n ")
}

// Words are drawn the same whatever pieces they come in, the terminal may be larger, and nothing of theirs acts on it.
func FuzzWords(f *testing.F) {
	f.Add("hello\nworld", 3, 20)
	f.Add("\n\na\r\n\r\n\x1b[2J日本語 \u202e👨‍👩‍👧 1️⃣ "+strings.Repeat("long ", 30)+"\n\n", 1, 30)
	f.Add(strings.Repeat("x", 390), 7, 21)
	f.Fuzz(checkWords)
}

func checkWords(t *testing.T, text string, piece, cols int) {
	text, cols, piece = strings.ToValidUTF8(text, "\ufffd"), min(max(cols, 20), 120), max(piece, 1)
	if len(text) > 400 {
		return
	}
	var whole, pieces screen
	whole.resize(cols, 24)
	pieces.resize(cols, 24)
	live := []string{"… working", "› draft"}
	whole.say(text)
	want := drawn(cols, 24, whole.frame("", live))
	var frames [][]byte
	for rest := text; rest != ""; {
		n := min(piece, len(rest))
		for !utf8.ValidString(rest[:n]) {
			n++
		}
		pieces.say(rest[:n])
		frames = append(frames, pieces.frame("", live))
		rest = rest[n:]
	}
	if got := drawn(cols, 24, frames...); text != "" && got != want {
		t.Errorf("in pieces of %d:\n%s\nnot\n%s", piece, got, want)
	}
	if got := drawn(cols+30, 40, frames...); text != "" && got != want {
		t.Errorf("on a larger terminal:\n%s\nnot\n%s", got, want)
	}
	whole.endText()
	pieces.endText()
	if !slices.Equal(whole.lines, pieces.lines) {
		t.Errorf("in pieces of %d the lines are %q, not %q", piece, pieces.lines, whole.lines)
	}
	all := strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\r\n")
	var said []string
	for _, l := range whole.lines {
		said = append(said, l.text)
	}
	if got := strings.Join(said, "\n"); got != plain(all) && !strings.Contains(all, "\r") {
		t.Errorf("said %q, not %q", got, plain(all))
	}
	for _, row := range strings.Split(want, "\n") {
		if strings.ContainsFunc(row, func(r rune) bool { return r < ' ' }) || ansi.StringWidth(row) > cols {
			t.Errorf("row %q", row)
		}
	}
}

// Lines and their bytes are bounded, as is a line without end.
func TestTranscriptIsBounded(t *testing.T) {
	var s screen
	s.resize(80, 24)
	for range 40 {
		s.say(strings.Repeat("é", maxWords))
		s.say(strings.Repeat("\n", maxWords))
		s.undrawn.Reset()
	}
	for i := range 2000 {
		s.print(note, fmt.Sprint("note ", i))
	}
	if len(s.lines) != maxLines || s.lines[maxLines-1] != (line{note, "note 1999"}) || s.size > maxText {
		t.Errorf("%d lines with %d bytes", len(s.lines), s.size)
	}
	s.say(strings.Repeat("x", 3<<20))
	if len(s.words) > 3*maxWords || s.size > maxText+maxWords {
		t.Errorf("%d bytes of words, %d of lines", len(s.words), s.size)
	}
}

// Whoever comes late sees what the others see, from then on too.
func TestRepaint(t *testing.T) {
	r := script(t, `read x; say 'one two three\n\nfour '; until [ -e go ]; do sleep 0.01; done; say 'five\nsix'; finish 3; read x`).ready()
	r.Resize(24, 10)
	r.Keys([]byte("a draft"))
	r.prompts("Count, and count on and on and on.")
	r.sees("  four\n")
	p, seq := r.Repaint(maxLines)
	r.mu.Lock()
	late := emulator.New(30, 12, 500)
	late.Write(p)
	r.late, r.lateFrom = late, seq
	r.mu.Unlock()
	touch(t, r.Dir+"/go")
	r.turnEnd()
	r.sees("\n  four five\n  six\n› a draft")
	r.mu.Lock()
	got := strings.TrimRight(strings.Join(late.Tail(500), "\n"), "\n ")
	r.mu.Unlock()
	if want := strings.TrimRight(r.shown(), "\n "); got != want {
		t.Errorf("whoever comes late sees\n%s\nnot\n%s", got, want)
	}
	if q, _ := r.Repaint(2); drawn(80, 24, q) != "  four five\n  six\n› a draft" {
		t.Errorf("the last lines:\n%s", drawn(80, 24, q))
	}
}

// The options of a question have keys, as far as there are keys, and a long one leaves room for them.
func TestQuestionIsDrawn(t *testing.T) {
	q := newQuestion("permission", "What?\x1b[2J "+strings.Repeat("long ", 10000))
	for i := range 30 {
		q.addOption(permissionOption(fmt.Sprint("Option\n", i)))
	}
	a := Agent{question: q}
	a.screen.resize(40, 24)
	got := strings.Split(drawn(40, 24, a.screen.frame(a.liveRows())), "\n")
	if len(got) != 24 || got[0] != "? permission" || !strings.HasPrefix(got[1], `  What?\x1b[2J`) || got[3] != "…" || got[4] != "1. Option 0" || got[22] != "j. Option 18" {
		t.Errorf("%q", got)
	}
	if d := q.Dialog; d.Options[29].ID != "30" || d.Options[29].Keys != "" || d.Options[19].Keys != "k" {
		t.Errorf("%+v", d.Options)
	}
}

// The keys are the same wherever the input is split, except after an escape.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{"abc\r", "\x1b[200~two\r\nlines\x1b\x07\x1b[201~\r", "\x1b[A\x1bOPx\x1b[1;5C\x7f", "\x1b\x1b[201~\xc3\xa4\xc3", "\x03\x15\x04\x01", "\x1bä0", "\x1b[200 A0"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) {
		var whole, pieces keys
		want := strings.Join(whole.feed([]byte(s)), "|")
		cut = max(1, cut)
		var got []string
		for p := []byte(s); len(p) > 0; {
			n := min(cut, len(p))
			for n < len(p) && p[n-1] == 0x1b {
				n++
			}
			got = append(got, pieces.feed(p[:n])...)
			p = p[n:]
		}
		if strings.Join(got, "|") != want || string(whole.rest) != string(pieces.rest) {
			t.Errorf("%q by %d: %q, not %q", s, cut, got, want)
		}
		if strings.ContainsFunc(strings.NewReplacer("\x1b", "", "\r", "", "\x7f", "", "\x03", "", "\x04", "", "\x15", "", "\n", "", "\t", "").Replace(want), func(c rune) bool { return letter.IsHidden(c) && c < 0xa0 }) {
			t.Errorf("%q: %q", s, want)
		}
	})
}

func TestKeys(t *testing.T) {
	var k keys
	for in, want := range map[string]string{
		"ab\r": "a|b|\r", "\x1b[200~a\r\nb\x1b[201~\n": "a\nb|\r", "\x1b[A\x1bOH\x1bxé\b": "é|\x7f", "\x01\x02\t": "",
	} {
		if got := strings.Join(k.feed([]byte(in)), "|"); got != want || len(k.rest) > 0 {
			t.Errorf("%q: %q", in, got)
		}
	}
	if got := k.feed([]byte("a\x1b")); len(got) != 2 || got[1] != "\x1b" || len(k.rest) > 0 {
		t.Errorf("a lone escape is no key: %q", got)
	}
}
