package letter

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	for shown, w := range cells(line) {
		if room -= w; room >= 0 || shown[0] == '\x1b' {
			b.WriteString(shown)
		} else if !isCut {
			b.WriteString("…")
			isCut = true
		}
	}
	return b.String()
}

// Wrap breaks the lines of a text that are longer than a row of a terminal. A row that continues a line is indented, so
// that nothing of a line comes to stand in column 0 but its beginning. 0: it breaks none.
func Wrap(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, isWhole := strings.CutSuffix(line, "\n")
		if width > 0 && (Columns(line) > width || strings.Contains(line, "\t")) {
			deep := len(line) - len(strings.TrimLeft(line, " ")) + 4
			line = WrapTo(line, strings.Repeat(" ", min(deep, width/2)), width)
		}
		b.WriteString(line)
		if isWhole {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// WrapTo breaks a line that is longer than a row, with an indent for each row but the first.
func WrapTo(line, indent string, width int) string {
	r := newRows(indent, width)
	for shown := range cells(line) {
		r.add(shown)
	}
	return string(r.out)
}

// cells yields the characters of a text, and how many columns a terminal needs for each at most. Terminals do not agree
// on emoji, and what is counted too narrow would be continued in column 0. A sequence that sets a colour is one of them.
func cells(s string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for s != "" {
			c, n := utf8.DecodeRuneInString(s)
			w := columnsOf(c)
			if end := strings.IndexByte(s, 'm'); c == '\x1b' && end > 0 {
				n, w = end+1, 0
			} else if isKeycap(s) {
				n, w = n+len(keycap), 2
			}
			if !yield(s[:n], w) {
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
	case unicode.In(c, pictographs, unicode.Hangul, unicode.Co), c > 0x1f000:
		return 2
	}
	return max(1, displaywidth.Rune(c))
}

// rows breaks a text into the rows of a terminal, between words where that is possible.
type rows struct {
	out    []byte
	indent string // of each row but the first
	width  int    // of a row; 0: endless
	count  int

	start, column    int // where the row begins in out, and the column of what comes next
	word, wordColumn int // where its last word begins
	mayBreak         bool
}

func newRows(indent string, width int) *rows {
	if width > 0 {
		width = max(width, len(indent)+2) // for a wide character
	}
	return &rows{indent: indent, width: width, count: 1}
}

// begin indents the first row too.
func (r *rows) begin() {
	r.out = append(r.out, r.indent...)
	r.start, r.column, r.word = len(r.out), len(r.out), len(r.out)
}

// add adds a character, or an escape for one.
func (r *rows) add(shown string) {
	switch {
	case r.width > 0 && strings.HasSuffix(shown, "\n"):
		r.breakAt(len(r.out), r.column)
	case strings.HasSuffix(shown, "\n"):
		r.out = append(append(r.out, shown...), r.indent...)
		r.count++
	case r.width == 0:
		r.out = append(r.out, shown...)
	case shown == "\t":
		for range 8 - (r.column-len(r.indent))&7 {
			r.put(" ", 1)
		}
	default:
		for cell, w := range cells(shown) {
			r.put(cell, w)
		}
	}
}

func (r *rows) put(cell string, w int) {
	isBlank := cell == " "
	isFull := r.column+w > r.width
	switch {
	case isFull && isBlank:
		r.mayBreak = true // and the row needs no blank at its end
		return
	case isFull && r.mayBreak:
		r.breakAt(len(r.out), r.column)
	case isFull && r.word > r.start:
		r.breakAt(r.word, r.wordColumn)
	}
	if r.column+w > r.width { // a word that is longer than a row
		r.breakAt(len(r.out), r.column)
	}
	if r.mayBreak && w > 0 && !isBlank {
		r.word, r.wordColumn = len(r.out), r.column
	}
	r.out, r.column = append(r.out, cell...), r.column+w
	if w > 0 || cell == string(zwj) {
		r.mayBreak = isBlank || w > 1
	}
}

// breakAt ends the row at a place in out, and moves what follows to the next one.
func (r *rows) breakAt(i, column int) {
	rest := slices.Clone(r.out[i:])
	r.out = append(r.out[:r.start], bytes.TrimRight(r.out[r.start:i], " ")...)
	r.out = append(append(r.out, '\n'), r.indent...)
	r.count++
	r.start, r.word, r.mayBreak = len(r.out), len(r.out), false
	r.out, r.column = append(r.out, rest...), r.column-column+len(r.indent)
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
