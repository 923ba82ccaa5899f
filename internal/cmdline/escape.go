package cmdline

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Escape returns s with everything that could steer a terminal or turn a line
// around written as an escape: control characters (U+0000–1F, 7F), C1,
// bidirectional controls (U+202A–202E, U+2066–2069), line and paragraph
// separators (U+2028, 2029), and bytes that are not UTF-8. The result is one
// line. It is for eyes: a backslash stays as it is.
func Escape(s string) string {
	for i, r := range s {
		if steers(r) || r == utf8.RuneError {
			return escapeFrom(s, i)
		}
	}
	return s
}

func steers(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f ||
		r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029
}

// escapeFrom escapes s, which is clean before i.
func escapeFrom(s string, i int) string {
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1, r < 0x20 && r != '\n' && r != '\r' && r != '\t', r == 0x7f:
			b.WriteString(`\x`)
			b.WriteByte(digits[s[i]>>4])
			b.WriteByte(digits[s[i]&15])
		case steers(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// escapeJSON escapes a document that encoding/json has written, followed by a
// newline. It leaves only U+007F, C1 and the bidirectional controls, and those
// only inside strings, where \u may stand.
func EscapeJSON(doc []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(doc)-1; {
		if b := doc[i]; b < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(doc[i:])
		if steers(r) {
			out = append(out, doc[done:i]...)
			out = append(out, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return doc
	}
	return append(out, doc[done:]...)
}

const digits = "0123456789abcdef"

// clipped shortens a word that somebody typed for a one-line message.
func clipped(s string) string {
	const most = 40
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// quoted is clipped in quotation marks.
func quoted(s string) string { return strconv.Quote(clipped(s)) }
