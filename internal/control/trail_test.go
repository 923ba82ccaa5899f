package control

import (
	"strings"
	"testing"
)

// after is what puts a terminal to rest to which that was written, piece by
// piece.
func after(pieces ...string) string {
	var t Trail
	for _, p := range pieces {
		t.Write([]byte(p))
	}
	return string(t.Undo())
}

const (
	atRest = "\x1b[0m\x1b[23;2t\r"
	below  = "\x1b[9999;1H\r\n"
)

func TestTrail(t *testing.T) {
	for _, test := range []struct{ name, wrote, want string }{
		{"nothing", "hello ✳\r\n", atRest + below},
		{"a hidden cursor", "\x1b[?25l", "\x1b[?25h" + atRest + below},
		{"shown again", "\x1b[?25l\x1b[?25h", atRest + below},
		{"paste, focus, mouse", "\x1b[?2004h\x1b[?1004h\x1b[?1000;1002;1003;1006h\x1b[?1003l",
			"\x1b[?1000l\x1b[?1002l\x1b[?1004l\x1b[?1006l\x1b[?2004l" + atRest + below},
		{"the alternate screen", "\x1b[?1049h", "\x1b[0m\x1b[?1049l\x1b[23;2t\r"},
		{"there and back", "\x1b[?1049h\x1b[?1049l", atRest + below},
		{"an open frame", "\x1b[?2026h", "\x1b[?2026l" + atRest + below},
		{"kitty, as codex has it", "\x1b[?1049h\x1b[>7u", "\x1b[<1u\x1b[=0u\x1b[0m\x1b[?1049l\x1b[23;2t\r"},
		{"kitty taken back", "\x1b[>7u\x1b[<u", atRest + below},
		{"kitty on the main screen", "\x1b[>1u\x1b[>3u\x1b[?1049h", "\x1b[0m\x1b[?1049l\x1b[<2u\x1b[=0u\x1b[23;2t\r"},
		{"keys as sequences", "\x1b[>4;2m", "\x1b[>4;0m" + atRest + below},
		{"keypad, insert, margins, shape, charset", "\x1b=\x1b[4h\x1b[2;5r\x1b[4 q\x1b(0", "\x1b[4l\x1b>\x1b[0 q\x1b(B\x0f\x1b[r" + atRest + below},
		{"no wrapping", "\x1b[?7l", "\x1b[?7h" + atRest + below},
		{"a reset", "\x1b[?25l\x1b[?1049h\x1b=\x1bc", atRest + below},
		{"a soft reset", "\x1b[?25l\x1b[4h\x1b[!p", atRest + below},
		{"a title that looks like a mode", "\x1b]0;[?25l\x1b\\x", atRest + below},
		{"cut off in a title", "\x1b]0;tit", "\x18\x1b\\" + atRest + below},
		{"cut off in a sequence", "\x1b[?25", "\x18\x1b\\" + atRest + below},
		{"an unknown mode", "\x1b[?31337h\x1b[?h", atRest + below},
		{"not private", "\x1b[25l", atRest + below},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := after(test.wrote); got != test.want {
				t.Errorf("%q is undone by %q, not %q", test.wrote, got, test.want)
			}
			if got := after(strings.Split(test.wrote, "")...); got != test.want {
				t.Errorf("a byte at a time %q is undone by %q, not %q", test.wrote, got, test.want)
			}
		})
	}
}

// However the output is cut, the same is undone, and a terminal that was put to
// rest has nothing left to undo.
func FuzzTrail(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[?25;2004h\x1b]0;x\a\x1b[>7u\x1b(0"))
	f.Add([]byte("\x1b[?1;2;3;4;5;6;7;8;9h\x1b[\x18\x1b[!p\x1bc\x1b[?2026h\x0e"))
	f.Fuzz(func(t *testing.T, p []byte) {
		var whole, torn Trail
		whole.Write(p)
		for i := range p {
			torn.Write(p[i : i+1])
		}
		undo := whole.Undo()
		if string(undo) != string(torn.Undo()) {
			t.Fatalf("%q: whole %q, torn %q", p, undo, torn.Undo())
		}
		whole.Write(undo)
		whole.charset, whole.margins, whole.shape = false, false, false // said again does no harm
		if again := string(whole.Undo()); again != atRest+below {
			t.Fatalf("%q: after %q there is still %q", p, undo, again)
		}
	})
}
