package wire

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// hex4 reads four hex digits.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unquote is the text of a string of valid JSON, given without its quotes. Half
// a surrogate pair is U+FFFD, as encoding/json has it.
func unquote(b []byte) string {
	var out strings.Builder
	out.Grow(len(b))
	for at := 0; ; at++ {
		plain := bytes.IndexByte(b[at:], '\\')
		if plain < 0 {
			out.Write(b[at:])
			return out.String()
		}
		out.Write(b[at : at+plain])
		at += plain + 1
		switch c := b[at]; c {
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		case 'u':
			r, _ := hex4(b[at+1:])
			at += 4
			if r >= 0xd800 && r < 0xe000 {
				first := r
				r = utf8.RuneError
				if rest := b[at+1:]; first < 0xdc00 && len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
					if second, _ := hex4(rest[2:]); second >= 0xdc00 && second < 0xe000 {
						r = 0x10000 + (first-0xd800)<<10 + (second - 0xdc00)
						at += 6
					}
				}
			}
			out.WriteRune(r)
		default: // itself
			out.WriteByte(c)
		}
	}
}
