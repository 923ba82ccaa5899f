package driver

import "strings"

// Columns are counted in runes here: left of the column in question stand only
// frames, glyphs and blanks, which are all one cell wide.

// blank reports whether nothing is to be seen of s.
func blank(s string) bool {
	for _, r := range s {
		if r != ' ' && r != '\u00a0' && r != '\t' {
			return false
		}
	}
	return true
}

// after is what follows the first n runes of s.
func after(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[i:]
		}
		n--
	}
	return ""
}

// runeAt is the rune number n of s, as text.
func runeAt(s string, n int) string {
	for _, r := range after(s, n) {
		return string(r)
	}
	return ""
}

// cutBefore is the number of runes before the first what in s.
func cutBefore(s, what string) (int, bool) {
	before, _, ok := strings.Cut(s, what)
	return len([]rune(before)), ok
}

// margin is the number of blanks that s begins with.
func margin(s string) int {
	n := 0
	for _, r := range s {
		if r != ' ' && r != '\u00a0' {
			break
		}
		n++
	}
	return n
}

// solid is s without any blank, tab or newline: the form in which texts are
// compared, since a program may wrap and indent them as it likes.
func solid(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\n', '\r', '\u00a0':
			return -1
		}
		return r
	}, s)
}

// hasAny reports whether s contains one of texts.
func hasAny(s string, texts []string) bool {
	for _, t := range texts {
		if strings.Contains(s, t) {
			return true
		}
	}
	return false
}

// startsAny reports whether s begins with one of texts.
func startsAny(s string, texts []string) bool {
	for _, t := range texts {
		if strings.HasPrefix(s, t) {
			return true
		}
	}
	return false
}

// width is an estimate of the cells that s takes: East Asian characters and
// emoji count as two. It decides where a row is full and where a box ends, not
// what is in a cell.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += wide(r)
	}
	return n
}

func wide(r rune) int {
	if r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd) {
		return 2
	}
	return 1
}

// cells is what of s fits into n cells.
func cells(s string, n int) string {
	for i, r := range s {
		if n -= wide(r); n < 0 {
			return s[:i]
		}
	}
	return s
}
