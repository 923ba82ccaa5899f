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

// keyPattern is the first key in some input, with what was pasted in 1. 2: it is not whole yet.
var keyPattern = regexp.MustCompile(`(?s)^(?:\x1b\[200~(.*?)\x1b\[201~|(\x1b(?:\[[0-?]{0,32}[ -/]{0,4}|O|\[200~.*)?$)` +
	`|\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|O[ -~]|[^\[O\x1b])?|.)`)

// controls are the control characters that mean something here.
var controls = map[string]string{"\r": "\r", "\n": "\r", "\b": "\x7f", "\x7f": "\x7f", "\x03": "\x03", "\x04": "\x04", "\x15": "\x15"}

// feed returns the keys that are whole by now. Those that mean nothing here are left out.
func (k *keys) feed(p []byte) (out []string) {
	for k.rest = append(k.rest, p...); len(k.rest) > 0; {
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

// isEscape reports whether all that waits is an escape: the key, if nothing follows.
func (k *keys) isEscape() bool { return string(k.rest) == "\x1b" }

// flush is the escape that waits, since nothing follows.
func (k *keys) flush() []string {
	k.rest = nil
	return []string{"\x1b"}
}
