package letter

import (
	"bytes"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// Wrap breaks the lines of a text that are longer than a row of a terminal (0: it breaks none): between words, and not
// within a command of ours that fits into a row. A row that continues a line is indented, so that nothing of a line comes
// to stand in column 0 but its beginning. Only a URL that is longer than a row is left to the terminal, which breaks it
// so that it can still be copied.
func Wrap(text string, width int) string { return wrap(text, width, urlsMayBeLonger) }

// WrapHint is Wrap for a text without words of others: a command that is longer than a row can be copied too.
func WrapHint(text string, width int) string { return wrap(text, width, commandsMayBeLonger) }

// WrapPane is Wrap for a part of a terminal: no row is longer than its width.
func WrapPane(text string, width int) string { return wrap(text, width, nothingMayBeLonger) }

// longer says what may be longer than a row.
type longer int

const (
	nothingMayBeLonger longer = iota
	urlsMayBeLonger
	commandsMayBeLonger // and URLs
)

func wrap(text string, width int, what longer) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, isWhole := strings.CutSuffix(line, "\n")
		if width > 0 && (Columns(line) > width || strings.Contains(line, "\t")) {
			deep := len(line) - len(strings.TrimLeft(line, " ")) + 4
			line = wrapLine(line, strings.Repeat(" ", min(deep, width/2)), width, commands(), what)
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
	return wrapLine(line, indent, width, commands(), urlsMayBeLonger)
}

// commands matches a command of ours in a line: up to a semicolon, a bracket, or a comma or colon at the end of a word.
var commands = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\batm(?: "[^"]*"| [^ ;()]*[^ ;:,()])+`) })

// wrapLine is WrapTo. It does not break at the blanks of a part that matches together and fits into a row.
func wrapLine(line, indent string, width int, together *regexp.Regexp, what longer) string {
	r := newRows(indent, width)
	r.longer = what
	add := func(text string) {
		for shown := range cells(text) {
			r.add(shown)
		}
	}
	end := 0
	for _, at := range together.FindAllStringIndex(line, -1) {
		add(line[end:at[0]])
		end = at[1]
		fits := Columns(line[at[0]:end])+len("),") <= width-len(indent)
		r.isTogether = fits || what == commandsMayBeLonger
		add(line[at[0]:end])
		r.isTogether = false
	}
	add(line[end:])
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

	longer     longer
	isTogether bool // what is added now has no blanks to break at
	isURL      bool // the last word is a URL that is longer than the row
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
	if cell[0] == '\x1b' {
		r.out = append(r.out, cell...)
		return
	}
	isBlank := cell == " " && !r.isTogether
	isFull := r.column+w > r.width
	switch {
	case isFull && isBlank:
		r.mayBreak = true // and the row needs no blank at its end
		return
	case isFull && r.mayBreak:
		r.breakAt(len(r.out), r.column)
	case isFull && r.word > r.start && !(len(bytes.TrimSpace(r.out[r.start:r.word])) == 0 && r.mayBeLonger(cell)):
		r.breakAt(r.word, r.wordColumn)
	}
	if r.column+w > r.width && !r.mayBeLonger(cell) { // a word that is longer than a row
		r.breakAt(len(r.out), r.column)
	}
	if r.mayBreak && w > 0 && !isBlank {
		r.word, r.wordColumn = len(r.out), r.column
	}
	r.out, r.column = append(r.out, cell...), r.column+w
	if w > 0 || cell == string(zwj) {
		r.mayBreak = isBlank || w > 1 && !r.isTogether
	}
}

// mayBeLonger reports whether the row may go on with a character that it has no room for.
func (r *rows) mayBeLonger(cell string) bool {
	if r.longer == nothingMayBeLonger || r.isTogether {
		return r.isTogether && r.longer == commandsMayBeLonger
	}
	r.isURL = isInURL(cell) && (r.isURL || isURL(string(r.out[r.word:])))
	return r.isURL
}

func isURL(word string) bool {
	word = strings.TrimLeft(word, `<("'`)
	return (strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://")) && !strings.ContainsFunc(word, func(c rune) bool { return !isInURL(string(c)) })
}

// isInURL reports whether a URL may have a character. No square bracket: what a terminal continues in column 0 must not
// look like a line of ours.
func isInURL(cell string) bool {
	c := cell[0]
	return len(cell) == 1 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~:/?#@!$&'()*+,;=%", c) >= 0)
}

// breakAt ends the row at a place in out, and moves what follows to the next one.
func (r *rows) breakAt(i, column int) {
	rest := slices.Clone(r.out[i:])
	r.out = append(r.out[:r.start], bytes.TrimRight(r.out[r.start:i], " ")...)
	r.out = append(append(r.out, '\n'), r.indent...)
	r.count++
	r.start, r.word, r.mayBreak, r.isURL = len(r.out), len(r.out), false, false
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
