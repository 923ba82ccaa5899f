package testagent

import (
	"bytes"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// key is one unit of input: a key by its name, a text, or a paste.
type key struct{ name, text string }

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

var keyNames = map[string]string{
	"\r": "enter", "\n": "newline", "\x1b\r": "newline", "\x1b\n": "newline", "\x1b[13;2u": "newline",
	"\x7f": "backspace", "\b": "backspace", "\x15": "ctrl-u", "\x1b": "esc", "\x1b[27u": "esc",
	"\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
	"\x1b]7501;?\x1b\\": "status", // the terminal reads what a program declares
}

// keys splits the bytes of a terminal, which may come cut anywhere.
type keys struct{ rest []byte }

// next removes the first key from the rest; false means that it is not complete yet. A sequence that is no key, such as
// a report of the terminal, has no name.
func (k *keys) next() (key, bool) {
	if len(k.rest) == 0 {
		return key{}, false
	}
	if k.rest[0] != 0x1b {
		n := bytes.IndexFunc(k.rest, func(r rune) bool { return r < ' ' || r == 0x7f })
		if n == 0 {
			return key{name: keyNames[string(k.take(1))]}, true
		}
		if n < 0 {
			n = len(k.rest)
		}
		return key{"text", string(k.take(n))}, true
	}
	if paste, ok := bytes.CutPrefix(k.rest, []byte(pasteStart)); ok {
		text, rest, ended := bytes.Cut(paste, []byte(pasteEnd))
		if !ended {
			return key{}, false
		}
		k.rest = rest
		return key{"paste", strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\r", "\n")}, true
	}
	if len(k.rest) > 1 && (k.rest[1] == '\r' || k.rest[1] == '\n') {
		return key{name: keyNames[string(k.take(2))]}, true
	}
	_, _, n, state := ansi.DecodeSequence(k.rest, ansi.NormalState, nil)
	if state != ansi.NormalState || n < 2 {
		return key{}, false
	}
	return key{name: keyNames[string(k.take(n))]}, true
}

func (k *keys) take(n int) []byte {
	p := k.rest[:n]
	k.rest = k.rest[n:]
	return p
}

// escape removes an ESC that no sequence followed, which was the Escape key.
func (k *keys) escape() bool {
	if len(k.rest) == 0 || k.rest[0] != 0x1b || bytes.HasPrefix(k.rest, []byte(pasteStart)) {
		return false
	}
	k.take(1)
	return true
}
