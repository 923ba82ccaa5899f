package ptyrun

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/screen"
)

// A program rests when its screen shows the same text, whatever it writes: those
// that paint draw their cursor again ten times a second.
func TestRestsWithoutSilence(t *testing.T) {
	t.Parallel()
	s := screen.New(20, 5, 100)
	var c capture
	now := time.Unix(1e9, 0)
	c.fresh(now)
	for i, paint := range []struct {
		bytes string
		want  string // what is told by then
	}{
		{"\x1b[?1049h\x1b[1;1Hone\x1b[5;1H> ", ""},
		{"\x1b[?2026h\x1b[?25l\x1b[5;3H\x1b[?25h\x1b[?2026l", ""},
		{"\x1b[?2026h\x1b[5;3H", "one | >"},
		{"\x1b[?2026l\x1b[5;3H", ""},
		{"\x1b[2;1Htwo\x1b[5;3H", ""},
		{"\x1b[2;4H!\x1b[5;3H", ""},
		{"\x1b[5;3H", ""},
		{"\x1b[5;3H", "two!"},
		{"\x1b[5;3H", ""},
	} {
		s.Write([]byte(paint.bytes))
		out, _ := c.rest(s, textual(s), now, now)
		var told []string
		for _, l := range strings.Split(strings.Join(out, "\n"), "\n") {
			if l != "" {
				told = append(told, l)
			}
		}
		if got := strings.Join(told, " | "); got != paint.want {
			t.Errorf("after %d ms: %q, want %q", i*100, got, paint.want)
		}
		now = now.Add(100 * time.Millisecond)
	}
}

// A line that stands elsewhere than it did is told once.
func TestMovedLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ about, was, paint, want string }{
		{"painted further up, as it would scroll", "a b c foot", "b c d foot", "d"},
		{"pushed down", "a foot", "a b foot", "b"},
		{"the same again", "a a foot", "a a a foot", "a"},
		{"another", "a b foot", "a x foot", "x"},
		{"past what is said again and again", "one done - two done foot", "two done - three done foot", "done  three"},
		{"past blank lines", "a b - - - - foot", "b c foot", "c"},
		{"taken away, and back", "a b c", "c", ""},
		{"turned round", "a b", "b a", "a"},
	} {
		for _, alt := range []bool{true, false} {
			s := screen.New(20, 8, 100)
			if alt {
				s.Write([]byte("\x1b[?1049h"))
			}
			var l lines
			paint := func(text string) []string {
				s.Write([]byte("\x1b[H\x1b[2J" + strings.NewReplacer(" ", "\r\n", "-", "").Replace(text)))
				return l.standing(s, textual(s))
			}
			paint(c.was)
			got := strings.Join(paint(c.paint), " ")
			want := c.want
			if !alt { // further up stands what was written again
				want = map[string]string{"b c d foot": "b c d", "b c foot": "b c foot", "two done - three done foot": "two three", "c": "c", "b a": "b"}[c.paint]
				if want == "" {
					want = c.want
				}
			}
			if got != want {
				t.Errorf("%s (alternate screen: %t): %q, want %q", c.about, alt, got, want)
			}
		}
	}
}

// What stood there before it began is not told, wrapped lines neither.
func TestSkippedLines(t *testing.T) {
	t.Parallel()
	s := screen.New(5, 6, 100)
	s.Write([]byte("wrapped line\r\nshort\r\n"))
	var l lines
	l.skip(s)
	s.Write([]byte("new"))
	if got := strings.Join(l.standing(s, textual(s)), " | "); got != "new" {
		t.Errorf("told %q", got)
	}
}

// However much has changed, each line is told that was not there, and no other.
func TestManyMovedLines(t *testing.T) {
	t.Parallel()
	var was, now []placed
	for i := range 1000 {
		was = append(was, placed{uint64(i), fmt.Sprint(i)})
		now = append(now, placed{uint64(i), fmt.Sprint(i + 500)})
	}
	now[0].text = "new"
	if got := added(was, now, true); len(got) != 501 || got[0] != "new" || got[1] != "1000" {
		t.Errorf("%d lines, %q", len(got), got[:min(len(got), 3)])
	}
}
