package acp

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"github.com/agentteammail/atm/ptyrun"
)

// keys makes keys of what comes from a terminal, however that is cut into pieces: a control character, a
// character, or what was pasted, in which only tabs and line feeds of the control characters are left.
type keys struct {
	rest []byte // the beginning of a key
}

var (
	sequence = regexp.MustCompile(`^\x1b(\[[0-?]{0,32}[ -/]{0,4}[@-~]|O[ -~]|[^\[O\x1b])`) // of another key
	partOfIt = regexp.MustCompile(`^\x1b(\[[0-?]{0,32}[ -/]{0,4}|O)?$`)
)

// controls are the control characters that mean something here.
var controls = map[byte]string{'\r': "\r", '\n': "\r", '\b': "\x7f", 0x7f: "\x7f", 0x03: "\x03", 0x04: "\x04", 0x15: "\x15"}

// feed returns the keys that are whole by now.
func (k *keys) feed(p []byte) (out []string) {
	k.rest = append(k.rest, p...)
	for len(k.rest) > 0 {
		n, key := k.next()
		if n == 0 {
			break
		}
		k.rest = k.rest[n:]
		if key != "" {
			out = append(out, key)
		}
	}
	return out
}

// isEscape reports whether all that waits is an escape: the key, if nothing follows.
func (k *keys) isEscape() bool { return string(k.rest) == "\x1b" }

// flush is the escape that waits, since nothing follows.
func (k *keys) flush() []string {
	k.rest = nil
	return []string{"\x1b"}
}

// next is the key that rest begins with, "" for one that means nothing here, and its length: 0 while it is not whole.
func (k *keys) next() (n int, key string) {
	if text, ok := bytes.CutPrefix(k.rest, []byte(ptyrun.PasteOn)); ok {
		body, _, isWhole := bytes.Cut(text, []byte(ptyrun.PasteOff))
		if isWhole {
			return len(ptyrun.PasteOn) + len(body) + len(ptyrun.PasteOff), ptyrun.Clean(string(body))
		}
		return 0, ""
	}
	switch first := k.rest[0]; {
	case partOfIt.Match(k.rest), !utf8.FullRune(bytes.TrimPrefix(k.rest, []byte("\x1b"))):
		return 0, ""
	case first == 0x1b:
		return max(1, len(sequence.Find(k.rest))), ""
	case first < ' ' || first == 0x7f:
		return 1, controls[first]
	}
	_, n = utf8.DecodeRune(k.rest)
	return n, ptyrun.Clean(string(k.rest[:n]))
}
