package acp

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A key is what was typed: text, or what a key means.
type key struct {
	does keyKind
	text string // of typing and a paste
}

type keyKind int

const (
	typing keyKind = iota
	paste
	enter
	backspace
	clearLine
	interrupt
	escapeKey
	endOfInput
)

// keys makes keys of what comes from a terminal, however that is cut into pieces.
type keys struct {
	rest []byte // the beginning of a key
}

const pasteOn, pasteOff = "\x1b[200~", "\x1b[201~"

// maxPaste is how much may be pasted at once; the rest of a longer paste is lost.
const maxPaste = 1 << 20

var controls = map[byte]keyKind{
	'\r': enter, '\n': enter, 0x7f: backspace, '\b': backspace, 0x15: clearLine, 0x03: interrupt, 0x04: endOfInput,
}

// feed returns the keys that are whole by now.
func (k *keys) feed(p []byte) (out []key) {
	k.rest = append(k.rest, p...)
	for len(k.rest) > 0 {
		n, key, ok := k.next()
		if n == 0 {
			break
		}
		if k.rest = k.rest[n:]; ok {
			out = append(out, key)
		}
	}
	return out
}

// isEscape reports whether all that waits is an escape: the key, if nothing follows.
func (k *keys) isEscape() bool { return string(k.rest) == "\x1b" }

// flush is what waits, if nothing follows.
func (k *keys) flush() []key {
	if !k.isEscape() {
		return nil
	}
	k.rest = nil
	return []key{{does: escapeKey}}
}

// next is the key that rest begins with, and its length: 0 while it is not whole. ok is false for a key
// that means nothing here.
func (k *keys) next() (n int, out key, ok bool) {
	if text, isPaste := bytes.CutPrefix(k.rest, []byte(pasteOn)); isPaste {
		body, _, isWhole := bytes.Cut(text, []byte(pasteOff))
		if !isWhole {
			if len(text) > maxPaste { // its end is looked for in what follows
				k.rest = append(k.rest[:len(pasteOn)+maxPaste/2], k.rest[len(k.rest)-len(pasteOff):]...)
			}
			return 0, out, false
		}
		return len(pasteOn) + len(body) + len(pasteOff), key{paste, clean(string(body))}, true
	}
	first := k.rest[0]
	if first == 0x1b {
		return k.nextSequence()
	}
	if does, ok := controls[first]; ok {
		return 1, key{does: does}, true
	}
	if !utf8.FullRune(k.rest) {
		return 0, out, false
	}
	_, n = utf8.DecodeRune(k.rest)
	text := clean(string(k.rest[:n]))
	return n, key{typing, text}, text != ""
}

// nextSequence is next for an escape: Alt and a key, or a sequence, none of which means anything here.
func (k *keys) nextSequence() (n int, out key, ok bool) {
	if len(k.rest) == 1 {
		return 0, out, false
	}
	switch k.rest[1] {
	case 0x1b:
		return 1, key{does: escapeKey}, true
	case '[', 'O':
		for i, b := range k.rest[2:] {
			if b >= 0x40 && b <= 0x7e {
				return i + 3, out, false
			}
			if b < 0x20 || i > 32 {
				return 2, out, false // no sequence
			}
		}
		return 0, out, false
	}
	return 2, out, false
}

// clean is a text as it goes into a prompt: lines and tabs, and no other control characters.
func clean(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0) {
			return -1
		}
		return r
	}, s)
}
