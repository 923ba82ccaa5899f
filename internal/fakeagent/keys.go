package fakeagent

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// keystroke is one thing that a terminal sends: a name, or text.
type keystroke struct {
	name string // text, paste, reply, or a key: enter, newline, esc, up, ctrl-c, …
	text string
}

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	// maxPaste bounds what an end mark that never comes can gather.
	maxPaste = 64 << 20
)

// keys takes the bytes of a terminal apart. Bytes may come cut anywhere.
type keys struct {
	guess   int // so many bytes at once without marks are a paste too; 0: never
	rest    []byte
	pasting bool
	paste   []byte
}

// feed takes the bytes of one read.
func (k *keys) feed(p []byte) []keystroke {
	var out []keystroke
	if k.guess > 0 && len(k.rest) == 0 && !k.pasting && len(p) >= k.guess && bytes.IndexByte(p, 0x1b) < 0 {
		return []keystroke{{"paste", unline(p)}}
	}
	k.rest = append(k.rest, p...)
	for len(k.rest) > 0 {
		if k.pasting {
			if !k.inPaste(&out) {
				break
			}
			continue
		}
		n := k.one(&out)
		if n == 0 {
			break
		}
		k.rest = k.rest[n:]
	}
	return out
}

// half says whether an escape waits for the rest of itself.
func (k *keys) half() bool { return !k.pasting && len(k.rest) > 0 && k.rest[0] == 0x1b }

// settle is for a half escape whose rest did not come: the Escape key, and
// what followed it.
func (k *keys) settle() []keystroke {
	if !k.half() {
		return nil
	}
	rest := k.rest[1:]
	k.rest = nil
	return append([]keystroke{{name: "esc"}}, k.feed(bytes.Clone(rest))...)
}

func (k *keys) inPaste(out *[]keystroke) (more bool) {
	i := bytes.Index(k.rest, []byte(pasteEnd))
	if i < 0 {
		keep := tailOf(k.rest, pasteEnd)
		k.paste = append(k.paste, k.rest[:len(k.rest)-keep]...)
		k.rest = k.rest[len(k.rest)-keep:]
		if len(k.paste) > maxPaste {
			k.paste = k.paste[:maxPaste]
		}
		return false
	}
	*out = append(*out, keystroke{"paste", unline(append(k.paste, k.rest[:i]...))})
	k.rest, k.paste, k.pasting = k.rest[i+len(pasteEnd):], nil, false
	return true
}

// tailOf is how many bytes at the end of p may be the beginning of mark.
func tailOf(p []byte, mark string) int {
	for n := min(len(mark)-1, len(p)); n > 0; n-- {
		if strings.HasPrefix(mark, string(p[len(p)-n:])) {
			return n
		}
	}
	return 0
}

// unline makes line breaks of Returns: terminals paste them so.
func unline(p []byte) string {
	s := strings.ReplaceAll(string(p), "\r\n", "\n")
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\r", "\n"), "\uFFFD")
}

// one takes the first keystroke off the rest and says how long it is; 0: more
// bytes must come first.
func (k *keys) one(out *[]keystroke) int {
	p := k.rest
	switch c := p[0]; {
	case c == 0x1b:
		return k.escape(p, out)
	case c == '\r':
		*out = append(*out, keystroke{name: "enter"})
		return 1
	case c == '\n':
		*out = append(*out, keystroke{name: "newline"})
		return 1
	case c == '\t':
		*out = append(*out, keystroke{name: "tab"})
		return 1
	case c == 0x7f || c == 0x08:
		*out = append(*out, keystroke{name: "backspace"})
		return 1
	case c < 0x20:
		*out = append(*out, keystroke{name: "ctrl-" + string(rune(c+0x60))})
		return 1
	}
	n := 0
	for n < len(p) && p[n] >= 0x20 && p[n] != 0x7f {
		if !utf8.FullRune(p[n:]) {
			break
		}
		_, size := utf8.DecodeRune(p[n:])
		n += size
	}
	if n > 0 {
		*out = append(*out, keystroke{"text", strings.ToValidUTF8(string(p[:n]), "\uFFFD")})
	}
	return n
}

func (k *keys) escape(p []byte, out *[]keystroke) int {
	if len(p) == 1 {
		return 0
	}
	switch p[1] {
	case 0x1b:
		*out = append(*out, keystroke{name: "esc"})
		return 1
	case '[':
		return k.csi(p, out)
	case 'O':
		if len(p) < 3 {
			return 0
		}
		*out = append(*out, arrow(p[2]))
		return 3
	case ']', 'P', '_', '^', 'X':
		for i := 2; i < len(p); i++ {
			if p[i] == 0x07 {
				*out = append(*out, keystroke{"reply", string(p[:i+1])})
				return i + 1
			}
			if p[i] == 0x1b && i+1 < len(p) {
				if p[i+1] != '\\' { // given up: what follows is another
					return i
				}
				*out = append(*out, keystroke{"reply", string(p[:i+2])})
				return i + 2
			}
		}
		return 0
	case '\r', '\n':
		*out = append(*out, keystroke{name: "newline"})
		return 2
	}
	*out = append(*out, keystroke{name: "alt"})
	return 2
}

func (k *keys) csi(p []byte, out *[]keystroke) int {
	i := 2
	for i < len(p) && p[i] >= 0x20 && p[i] < 0x40 {
		i++
	}
	if i == len(p) {
		return 0
	}
	body, final := string(p[2:i]), p[i]
	n := i + 1
	switch {
	case body == "200" && final == '~':
		k.pasting = true
	case strings.IndexByte("ABCD", final) >= 0:
		*out = append(*out, arrow(final))
	case final == 'u' && (body == "27" || strings.HasPrefix(body, "27;1")):
		*out = append(*out, keystroke{name: "esc"})
	case final == 'u' && (body == "13" || strings.HasPrefix(body, "13;1")):
		*out = append(*out, keystroke{name: "enter"})
	case strings.IndexByte("cRnytuIOMm", final) >= 0:
		*out = append(*out, keystroke{"reply", string(p[:n])})
	default:
		*out = append(*out, keystroke{name: "other"})
	}
	return n
}

func arrow(final byte) keystroke {
	switch final {
	case 'A':
		return keystroke{name: "up"}
	case 'B':
		return keystroke{name: "down"}
	case 'C':
		return keystroke{name: "right"}
	case 'D':
		return keystroke{name: "left"}
	case 'M':
		return keystroke{name: "enter"}
	}
	return keystroke{name: "other"}
}
