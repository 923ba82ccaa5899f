//go:build linux || darwin

package acpfront

import (
	"bytes"
	"io"
	"regexp"
	"unicode/utf8"

	"github.com/agentteammail/atm/ptyrun"
)

// keys splits terminal input into keys: a control character, a character, or a pasted text, which keeps no control
// characters but tabs and line feeds. Input may be split anywhere except after an escape: an escape at the end of a
// piece is the Escape key.
type keys struct {
	rest []byte // an incomplete key
}

// keyPattern matches the first key. Group 1 is a pasted text, group 2 an incomplete key.
var keyPattern = regexp.MustCompile(`(?s)^(?:\x1b\[200~(.*?)\x1b\[201~|(\x1b(?:\[[0-?]{0,32}[ -/]{0,4}|O|\[200~.*)?$)` +
	`|\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|O[ -~]|[^\[O\x1b])?|.)`)

// controls maps the control characters that the front knows.
var controls = map[string]string{"\r": "\r", "\n": "\r", "\b": "\x7f", "\x7f": "\x7f", "\x03": "\x03", "\x04": "\x04", "\x15": "\x15"}

// feed returns the complete keys so far, without those that the front does not know.
func (k *keys) feed(p []byte) (out []string) {
	for k.rest = append(k.rest, p...); len(k.rest) > 0; {
		if string(k.rest) == "\x1b" {
			k.rest = nil
			return append(out, "\x1b")
		}
		found := keyPattern.FindSubmatch(k.rest)
		if found[2] != nil || !utf8.FullRune(bytes.TrimPrefix(k.rest, []byte("\x1b"))) {
			break
		}
		k.rest = k.rest[len(found[0]):]
		key := string(found[0])
		switch {
		case found[1] != nil:
			key = ptyrun.Clean(string(found[1]))
		case key[0] == 0x1b:
			continue
		case key < " " || key == "\x7f":
			key = controls[key]
		default:
			key = ptyrun.Clean(key)
		}
		if key != "" {
			out = append(out, key)
		}
	}
	return out
}

func (f *front) readKeys(in io.Reader) {
	p := make([]byte, 32<<10)
	n, err := in.Read(p)
	for ; err == nil; n, err = in.Read(p) {
		f.do(func() { f.press(f.keys.feed(p[:n])) })
	}
	f.do(func() { f.exit(0, "the terminal is gone") })
}
