package acp

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"github.com/agentteammail/atm/ptyrun"
)

// keys makes keys of what comes from a terminal: a control character, a character, or what was pasted, in which only
// tabs and line feeds of the control characters are left. It may be cut into pieces anywhere but behind an escape: one
// that ends a piece is the key.
type keys struct {
	rest []byte // the beginning of a key
}

// keyPattern is the first key in some input, with what was pasted in 1. 2: it is not whole yet.
var keyPattern = regexp.MustCompile(`(?s)^(?:\x1b\[200~(.*?)\x1b\[201~|(\x1b(?:\[[0-?]{0,32}[ -/]{0,4}|O|\[200~.*)?$)` +
	`|\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|O[ -~]|[^\[O\x1b])?|.)`)

// controls are the control characters that mean something here.
var controls = map[string]string{"\r": "\r", "\n": "\r", "\b": "\x7f", "\x7f": "\x7f", "\x03": "\x03", "\x04": "\x04", "\x15": "\x15"}

// feed returns the keys that are whole by now. Those that mean nothing here are left out.
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
