package foot

import (
	"bytes"
	"unicode/utf8"
)

// action is what a key does.
type action int

const (
	none action = iota
	self        // stands for itself
	enter
	paste // begins
	cancel
	leaves
	left
	right
	leftWord
	rightWord
	home
	end
	up
	down
	rubout
	remove
	ruboutWord
	clearAll
	clearRest
	redraw
)

// control is what a control character does.
func control(c byte) action {
	switch c {
	case '\r', '\n':
		return enter
	case 0x7f, 8:
		return rubout
	case 1:
		return home
	case 2:
		return left
	case 3:
		return cancel
	case 4:
		return leaves
	case 5:
		return end
	case 6:
		return right
	case 11:
		return clearRest
	case 12:
		return redraw
	case 14:
		return down
	case 16:
		return up
	case 21:
		return clearAll
	case 23:
		return ruboutWord
	}
	return none
}

// sequence is what a key does that sends ESC [ or ESC O and this: with the
// modifiers that terminals put in.
func sequence(s string) action {
	switch s {
	case "A":
		return up
	case "B":
		return down
	case "C":
		return right
	case "D":
		return left
	case "H", "1~", "7~":
		return home
	case "F", "4~", "8~":
		return end
	case "3~":
		return remove
	case "200~":
		return paste
	case "1;5C", "1;3C", "5C":
		return rightWord
	case "1;5D", "1;3D", "5D":
		return leftWord
	}
	return none
}

// maxKey is the longest sequence that is waited for.
const maxKey = 64

// key is the key that b begins with and how long it is; 0: it is not whole.
func key(b []byte) (action, int) {
	switch c := b[0]; {
	case c == 0x1b:
		return escape(b)
	case c == '\t':
		return none, 1
	case c < 0x20 || c == 0x7f:
		return control(c), 1
	case c < utf8.RuneSelf:
		n := bytes.IndexFunc(b, func(r rune) bool { return r < 0x20 || r >= 0x7f })
		if n < 0 {
			n = len(b)
		}
		return self, n
	}
	if !utf8.FullRune(b) {
		return none, 0
	}
	_, n := utf8.DecodeRune(b)
	return self, n
}

// escape is the key that b, which begins with ESC, begins with. A lone ESC is
// whole only when something follows: then it is Alt with that key.
func escape(b []byte) (action, int) {
	if len(b) == 1 {
		return none, 0
	}
	switch b[1] {
	case '[', 'O':
		for i := 2; i < len(b); i++ {
			if c := b[i]; c >= 0x40 && c <= 0x7e && !(b[1] == '[' && i == 2 && c == '[') {
				return sequence(string(b[2 : i+1])), i + 1
			} else if c < 0x20 {
				return none, i
			}
		}
		if len(b) > maxKey {
			return none, len(b)
		}
		return none, 0
	case 'b':
		return leftWord, 2
	case 'f':
		return rightWord, 2
	case 0x7f, 8:
		return ruboutWord, 2
	case 0x1b:
		return none, 1
	}
	return none, 2
}
