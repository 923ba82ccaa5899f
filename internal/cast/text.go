package cast

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// tail is the beginning of a rune whose other bytes have not come yet.
type tail struct {
	bytes [utf8.UTFMax]byte
	n     int
}

// join returns what of p can be recorded: first the rune that the tail is
// completed to, then the rest. What p ends with of a rune becomes the tail.
func (t *tail) join(p []byte) (head, body []byte) {
	if t.n > 0 {
		for len(p) > 0 && !utf8.RuneStart(p[0]) && !utf8.FullRune(t.bytes[:t.n]) {
			t.bytes[t.n] = p[0]
			t.n++
			p = p[1:]
		}
		if len(p) == 0 && !utf8.FullRune(t.bytes[:t.n]) {
			return nil, nil
		}
		head = t.take()
	}
	whole := len(p) - torn(p)
	t.n = copy(t.bytes[:], p[whole:])
	return head, p[:whole]
}

// torn is how many bytes at the end of p begin a rune that is not all there.
func torn(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// take returns what there is and forgets it.
func (t *tail) take() []byte {
	b := slices.Clone(t.bytes[:t.n])
	t.n = 0
	return b
}

// sequence follows terminal output to know whether it stands within an escape
// sequence. Only what comes after the last ESC counts.
type sequence int

const (
	outside sequence = iota
	escaped          // after ESC
	control          // after ESC [
	charset          // after ESC ( and the like: one byte is to come
	textual          // after ESC ] P X ^ _: until BEL or ESC \
)

func (s sequence) settled() bool { return s == outside }

func (s *sequence) feed(p []byte) {
	if i := bytes.LastIndexByte(p, 0x1b); i >= 0 {
		// Whatever is before, this ends it: a text with ESC \, which is a
		// sequence of its own here.
		*s = escaped
		p = p[i+1:]
	}
	for len(p) > 0 && *s != outside {
		b := p[0]
		p = p[1:]
		switch *s {
		case escaped:
			switch {
			case b == '[':
				*s = control
			case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
				*s = textual
			case b >= 0x20 && b <= 0x2f:
				*s = charset
			default:
				*s = outside
			}
		case control:
			if b >= 0x40 && b <= 0x7e || b == 0x18 || b == 0x1a {
				*s = outside
			}
		case charset:
			if b >= 0x30 {
				*s = outside
			}
		case textual:
			// BEL ends it; CAN and SUB give it up.
			if b == 0x07 || b == 0x18 || b == 0x1a {
				*s = outside
			} else if i := bytes.IndexAny(p, "\x07\x18\x1a"); i >= 0 {
				p = p[i:]
			} else {
				p = nil
			}
		}
	}
}

// appendEscaped appends src as the inside of a JSON string. Bytes that are no
// UTF-8 become U+FFFD each. encoding/json would take ten times as long, and this
// stands between a program that floods its terminal and the screen.
func appendEscaped(dst, src []byte) []byte {
	const block = 4096
	for len(src) > 0 {
		n := len(src)
		if n > block {
			n = block - torn(src[:block])
		}
		dst = slices.Grow(dst, 6*n+8) // \u001b for each byte, and a word too much
		dst = escapeBlock(dst, src[:n])
		src = src[n:]
	}
	return dst
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
	hex   = "0123456789abcdef"
)

// special marks in each byte's high bit those of eight bytes that cannot stand as
// they are: controls, quote, backslash, and what is not ASCII. Only the lowest
// mark is sure to be right, because subtraction borrows.
func special(w uint64) uint64 {
	quote, slash := w^('"'*ones), w^('\\'*ones)
	return (w | (w-' '*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// escapeBlock is appendEscaped for a dst with room for six bytes each and eight
// more.
func escapeBlock(dst, src []byte) []byte {
	n, i := len(dst), 0
	dst = dst[:cap(dst)]
	for i < len(src) {
		// Eight at once: all are stored, those up to the first special one count.
		if i+8 <= len(src) {
			word := binary.LittleEndian.Uint64(src[i:])
			binary.LittleEndian.PutUint64(dst[n:], word)
			mask := special(word)
			if mask == 0 {
				n += 8
				i += 8
				continue
			}
			plain := bits.TrailingZeros64(mask) / 8
			n += plain
			i += plain
		}
		// Special ones seldom come alone: \r\n, ESC after a newline, CJK.
		for i < len(src) {
			b := src[i]
			if b >= utf8.RuneSelf {
				r, size := utf8.DecodeRune(src[i:])
				if r == utf8.RuneError && size == 1 {
					n += copy(dst[n:], "\uFFFD")
				} else {
					n += copy(dst[n:], src[i:i+size])
				}
				i += size
				continue
			}
			if b >= ' ' && b != '"' && b != '\\' {
				if i+8 <= len(src) {
					break
				}
				dst[n] = b
				n++
				i++
				continue
			}
			i++
			short := shortEscapes[b]
			dst[n] = '\\'
			if short != 0 {
				dst[n+1] = short
				n += 2
				continue
			}
			binary.LittleEndian.PutUint32(dst[n+1:], 'u'|'0'<<8|'0'<<16|uint32('0'+b>>4)<<24)
			dst[n+5] = hex[b&15]
			n += 6
		}
	}
	return dst[:n]
}

// shortEscapes are the escapes of one letter.
var shortEscapes = [utf8.RuneSelf]byte{'\n': 'n', '\r': 'r', '\t': 't', '"': '"', '\\': '\\'}
