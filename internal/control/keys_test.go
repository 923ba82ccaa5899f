package control

import (
	"bytes"
	"testing"
)

// typing feeds pieces and returns what passes, with "!" where the detach key
// was found; a piece "…" is the moment after which a beginning is settled.
func typing(pieces ...string) string {
	var k keys
	out := ""
	for _, p := range pieces {
		if p == "…" {
			out += string(k.settle())
			continue
		}
		passed, detach := k.feed([]byte(p))
		out += string(passed)
		if detach {
			return out + "!"
		}
	}
	return out
}

const cb = "\x1c" // Ctrl-\

func TestDetachKey(t *testing.T) {
	for _, test := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"the key", []string{cb + "d"}, "!"},
		{"in two reads", []string{cb, "d"}, "!"},
		{"after text, and what follows is dropped", []string{"ls" + cb + "drm"}, "ls!"},
		{"a d alone", []string{"dd"}, "dd"},
		{"Ctrl-\\ alone waits", []string{"a" + cb, "…"}, "a"},
		{"and goes with the next key", []string{"a" + cb, "…", "x"}, "a" + cb + "x"},
		{"a large D is another key", []string{cb + "D" + "d"}, cb + "Dd"},
		{"twice passes one", []string{cb + cb, "x"}, cb + cb + "x"},
		{"twice and d", []string{cb + cb + "d"}, cb + "!"},
		{"then an umlaut", []string{cb + "\xc3", "\xa4d"}, cb + "äd"},
		{"then an arrow", []string{cb + "\x1b[A", "d"}, cb + "\x1b[Ad"},
		{"then Escape", []string{cb + "\x1b", "…", "d"}, cb + "\x1bd"},
		{"then Alt-d", []string{cb + "\x1bd"}, cb + "\x1bd"},
		{"after Escape", []string{"\x1b", "…", cb + "d"}, "\x1b!"},
		{"after Escape at once", []string{"\x1b" + cb + "d"}, "\x1b!"},
		{"after two Escapes", []string{"\x1b\x1b" + cb + "d"}, "\x1b\x1b!"},
		{"after Alt-[", []string{"\x1b[", "…", cb + "d"}, "\x1b[!"},
		{"after Alt-]", []string{"\x1b]", "…", "ab", cb, "d"}, "\x1b]ab!"},
		{"after Alt-O", []string{"\x1bO", "…", cb, "d"}, "\x1bO!"},

		{"in a paste", []string{"\x1b[200~" + cb + "d\x1b[201~"}, "\x1b[200~" + cb + "d\x1b[201~"},
		{"in a paste, torn", []string{"\x1b", "[2", "00", "~a" + cb, "d", "\x1b", "[20", "1~"}, "\x1b[200~a" + cb + "d\x1b[201~"},
		{"in a paste, torn for long", []string{"\x1b[2", "…", "00~", "…", cb + "d\x1b[2", "…", "01~"}, "\x1b[200~" + cb + "d\x1b[201~"},
		{"in a paste with a false end", []string{"\x1b[200~\x1b[20\x1b[200~" + cb + "d\x1b[201~" + cb + "d"}, "\x1b[200~\x1b[20\x1b[200~" + cb + "d\x1b[201~!"},
		{"after a paste", []string{"\x1b[200~x\x1b[201~", cb, "d"}, "\x1b[200~x\x1b[201~!"},
		{"a paste between", []string{cb + "\x1b[200~d\x1b[201~"}, cb + "\x1b[200~d\x1b[201~"},
		{"the end of a paste alone", []string{cb + "\x1b[201~d"}, "\x1b[201~!"},

		{"a cursor report between", []string{cb + "\x1b[12;40Rd"}, "\x1b[12;40R!"},
		{"focus between", []string{cb, "\x1b[O", "\x1b[I", "d"}, "\x1b[O\x1b[I!"},
		{"a mouse between", []string{cb, "\x1b[<35;10;20M\x1b[<35;10;20m", "d"}, "\x1b[<35;10;20M\x1b[<35;10;20m!"},
		{"an old mouse between, with a d in it", []string{cb, "\x1b[M d", "!", "d"}, "\x1b[M d!!"},
		{"a colour between", []string{cb, "\x1b]11;rgb:0/d/0\x1b", "\\", "d"}, "\x1b]11;rgb:0/d/0\x1b\\!"},
		{"a colour that ends with a bell", []string{cb, "\x1b]11;rgb:0/d/0\a", "d"}, "\x1b]11;rgb:0/d/0\a!"},
		{"attributes between", []string{cb, "\x1b[?62;22c\x1b[>0;276;0c\x1bP>|xterm(d)\x1b\\\x1b[?2026;2$y\x1b[?7u", "d"},
			"\x1b[?62;22c\x1b[>0;276;0c\x1bP>|xterm(d)\x1b\\\x1b[?2026;2$y\x1b[?7u!"},
		{"a report, then another key", []string{cb + "\x1b[Ix"}, "\x1b[I" + cb + "x"},
		{"a long one passes", []string{"\x1b[" + "1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7;8;9" + "m" + cb + "d"},
			"\x1b[1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7;8;9m!"},

		{"kitty", []string{"\x1b[92;5ud"}, "!"},
		{"kitty with releases", []string{"\x1b[92;5:1u\x1b[92;5:3u\x1b[57442;1:3u", "d"}, "\x1b[57442;1:3u!"},
		{"kitty, all keys", []string{"\x1b[92;5u", "\x1b[92;1:3u", "\x1b[100;1:1u"}, "!"},
		{"kitty with alternates and locks", []string{"\x1b[92:124;69u", "\x1b[100;129u"}, "!"},
		{"kitty, torn", []string{"\x1b[9", "2;", "5u", "d"}, "!"},
		{"kitty, torn for long", []string{"\x1b[9", "…", "2;5u", "d"}, "\x1b[92;5u!"},
		{"kitty, then another", []string{"\x1b[92;5u\x1b[92;5:3u", "x"}, "\x1b[92;5u\x1b[92;5:3ux"},
		{"kitty, then Ctrl-d", []string{"\x1b[92;5u\x1b[100;5u"}, "\x1b[92;5u\x1b[100;5u"},
		{"kitty, a backslash", []string{"\x1b[92;1:1ud"}, "\x1b[92;1:1ud"},
		{"kitty, Alt-Ctrl-\\", []string{"\x1b[92;7ud"}, "\x1b[92;7ud"},
		{"xterm", []string{"\x1b[27;5;92~d"}, "!"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := typing(test.pieces...); got != test.want {
				t.Errorf("%q gives %q, not %q", test.pieces, got, test.want)
			}
		})
	}
}

// An Escape key is not held for longer than settle says.
func TestEscapeSettles(t *testing.T) {
	var k keys
	if out, _ := k.feed([]byte("\x1b")); len(out) != 0 || !k.unsettled() {
		t.Errorf("%q", out)
	}
	if out := k.settle(); string(out) != "\x1b" || k.unsettled() || len(k.settle()) != 0 {
		t.Errorf("%q", out)
	}
	// Ctrl-\ is not the beginning of anything: it waits for a key.
	if k.feed([]byte(cb)); k.unsettled() {
		t.Error("Ctrl-\\ would be sent after a moment")
	}
}

// However the bytes are cut, the same passes, and unless it detaches nothing is
// lost.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("ls\x1b[A" + cb + "x\x1b[200~" + cb + "d\x1b[201~"))
	f.Add([]byte("\x1b[92;5u\x1b[92;5:3u\x1b[100u"))
	f.Add([]byte("\x1b]11;rgb:\x1b\\\x1b[M !!" + cb + "\x1b[I"))
	f.Fuzz(func(t *testing.T, p []byte) {
		var whole, torn keys
		a, detached := whole.feed(p)
		a = append([]byte(nil), a...)
		var b []byte
		again := false
		for _, c := range p {
			out, detach := torn.feed([]byte{c})
			b = append(b, out...)
			if detach {
				again = true
				break
			}
		}
		if detached != again || !bytes.Equal(a, b) {
			t.Fatalf("%q: whole %q %v, torn %q %v", p, a, detached, b, again)
		}
		if detached {
			return
		}
		rest := append(append([]byte(nil), whole.held...), whole.seq[whole.sent:]...)
		if got := len(a) + len(rest); got != len(p) {
			t.Fatalf("%q: %d bytes of %d", p, got, len(p))
		}
		// With a moment after each byte nothing is lost either.
		var slow keys
		n := 0
		for _, c := range p {
			out, detach := slow.feed([]byte{c})
			if detach {
				return
			}
			n += len(out)
			n += len(slow.settle())
		}
		if n += len(slow.held); n != len(p) {
			t.Fatalf("%q slowly: %d bytes of %d", p, n, len(p))
		}
	})
}
