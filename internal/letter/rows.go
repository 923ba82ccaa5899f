package letter

import (
	"iter"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// Columns is how many columns a terminal needs for a line at most; colours need none.
func Columns(line string) (n int) {
	for _, w := range cells(line) {
		n += w
	}
	return n
}

// Fit cuts a line to as many columns.
func Fit(line string, width int) string {
	if Columns(line) <= width {
		return line
	}
	var b strings.Builder
	room, isCut := width-1, false
	for cell, w := range cells(line) {
		if room -= w; room >= 0 || cell[0] == '\x1b' {
			b.WriteString(cell)
		} else if !isCut {
			b.WriteString("…")
			isCut = true
		}
	}
	return b.String()
}

// Wrap breaks the lines of a text that are longer than a row of a terminal (0: it breaks none), between words. A row that
// continues a line is indented, so that nothing of a line comes to stand in column 0 but its beginning. Only a URL that is
// longer than a row is left to the terminal, which breaks it so that it can still be copied.
func Wrap(text string, width int) string { return wrap(text, width, true) }

// WrapPane is Wrap for a part of a terminal: no row is longer than its width, also none with a URL.
func WrapPane(text string, width int) string { return wrap(text, width, false) }

func wrap(text string, width int, longURLs bool) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		deep := len(line) - len(strings.TrimLeft(line, " ")) + 4
		lines[i] = wrapLine(line, strings.Repeat(" ", min(deep, max(width/2, 0))), width, longURLs)
	}
	return strings.Join(lines, "\n")
}

// WrapTo breaks a line that is longer than a row, with an indent for each row but the first.
func WrapTo(line, indent string, width int) string { return wrapLine(line, indent, width, true) }

func wrapLine(line, indent string, width int, longURLs bool) string {
	var all []string
	for row := range rows(line, width, width-len(indent), longURLs) {
		all = append(all, row)
	}
	return strings.Join(all, "\n"+indent)
}

// rows yields the rows of a line, and what of the line follows each. The first row has a width of its own; 0: it is endless.
func rows(line string, first, width int, longURLs bool) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if first <= 0 {
			yield(line, "")
			return
		}
		row, rest := cutRow(withoutTabs(strings.TrimSuffix(line, "\r")), first, longURLs)
		for yield(row, rest) && rest != "" {
			row, rest = cutRow(rest, max(width, 1), longURLs)
		}
	}
}

// cutRow cuts what fits into a row from a line, up to a blank or behind a wide character. A word that is longer than the
// row is cut anywhere, but for a URL if longURLs is set.
func cutRow(line string, width int, longURLs bool) (row, rest string) {
	at, column, end := 0, 0, 0
	for cell, w := range cells(line) {
		if cell == " " {
			end = at
		} else if at > 0 && w > 0 && column+w > width {
			break
		}
		at, column = at+len(cell), column+w
		if w > 1 {
			end = at
		}
	}
	if at == len(line) {
		if end = at; column <= width {
			return line, ""
		}
	} else if strings.TrimLeft(line[:end], " ") == "" {
		if end = at; longURLs {
			end = max(end, len(leadingURL().FindString(line)))
		}
	}
	return strings.TrimRight(line[:end], " "), strings.TrimLeft(line[end:], " ")
}

// leadingURL matches a URL. It has no square bracket: what a terminal continues in column 0 must not look like a line of
// ours.
var leadingURL = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^ *[<("']*https?://[-0-9A-Za-z._~:/?#@!$&'()*+,;=%]*`)
})

func withoutTabs(line string) string {
	var b strings.Builder
	column := 0
	for part := range strings.SplitAfterSeq(line, "\t") {
		text, isTab := strings.CutSuffix(part, "\t")
		b.WriteString(text)
		if column += Columns(text); isTab {
			blanks := 8 - column%8
			b.WriteString(strings.Repeat(" ", blanks))
			column += blanks
		}
	}
	return b.String()
}

// cells yields the characters of a text as people see them, and how many columns a terminal needs for each at most: some
// count each part of an emoji, and what is counted too narrow would be continued in column 0. (ansi.Wrap of charmbracelet/x
// counts at the narrowest, and made each start of atm a tenth slower.) A sequence that sets a colour is one character.
func cells(s string) iter.Seq2[string, int] {
	const widest = 8 // a family of four emoji; what goes on is another character
	return func(yield func(string, int) bool) {
		for s != "" {
			n, columns, before := len(s), 0, rune(0)
			for i, c := range s {
				w, isPart := columnsOf(c), before == zwj
				if c == emojiStyle {
					w, isPart = max(2-columnsOf(before), 0), true // which makes a character wide
				}
				if i > 0 && w > 0 && (!isPart || columns+w > widest) {
					n = i
					break
				}
				columns, before = columns+w, c
			}
			if s[0] == '\x1b' {
				n, columns = max(n, strings.IndexByte(s, 'm')+1), 0
			}
			if !yield(s[:n], columns) {
				return
			}
			s = s[n:]
		}
	}
}

func columnsOf(c rune) int {
	switch {
	case c < 0x300:
		return 1
	case IsHidden(c), unicode.In(c, unicode.Mn, unicode.Me):
		return 0
	case c >= 0x2600 && c <= 0x27bf, c >= 0x1f000, unicode.In(c, unicode.Hangul, unicode.Co):
		return 2
	}
	return max(1, displaywidth.Rune(c))
}

// KeepDirection keeps a text that is written from right to left from turning the rest of its row around.
func KeepDirection(text string) string {
	isFromRight := func(c rune) bool {
		return unicode.In(c, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam)
	}
	if strings.ContainsFunc(text, isFromRight) {
		return "\u200e" + text
	}
	return text
}
