package driver

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A shape is how an input box is drawn, and the dialog that comes in its place.
type shape int

const (
	noBox    shape = iota
	ruled          // between two rules ──── of the whole width; a dialog below one
	halves         // between ▄▄▄▄ and ▀▀▀▀; a dialog in a frame ╭│╰
	barred         // rows that begin with ┃, the last ╹▀▀▀▀; a dialog without that last one
	unframed       // a glyph in the first column, and the cursor; a dialog below the last row that is not indented
)

type boxStyle struct {
	shape        shape
	glyph        string   // before the text
	indent       int      // columns before the glyph
	text         int      // columns from the glyph to the text
	tailRows     int      // barred: rows at the end of the box that are not text
	modes        []phrase // glyphs and a blank that take the place of glyph, and what they mean
	placeholders []string // how texts begin that stand in an empty box and are not drawn dim
	excludes     []string // the rows below have none of these, else it is no box
	maxBelow     int      // at most so many rows that are not blank stand below it
	startingFoot string   // all that stands below it, under an empty title, while the program still starts
}

// A phrase is a text and what its presence is called.
type phrase struct{ text, means string }

type inputBox struct {
	top, bottom int // rows of the box with its frame
	first, last int // rows of the text
	column      int // of the text
	width       int // cells that a row of the text has; 0: to the end of the row
	draft       string
	mode        string // what the glyph means, when it is not the usual one
	isCut       bool   // the upper edge is not on the screen
}

// findBox returns the lowest input box on l, if it stands where the program draws it: at the bottom.
func (d *Driver) findBox(l *Look) (p inputBox, ok bool) {
	switch d.box.shape {
	case ruled:
		p, ok = d.findBetween(l, "─", "─")
	case halves:
		p, ok = d.findBetween(l, "▄", "▀")
	case barred:
		p, ok = d.findBarred(l)
	case unframed:
		p, ok = d.findUnframed(l)
	}
	filled := 0
	for y := p.bottom + 1; y < len(l.Lines); y++ {
		if line := l.line(y); !blank(line) {
			filled++
			ok = ok && !hasAny(line, d.box.excludes)
		}
	}
	if !ok || filled > d.box.maxBelow {
		return inputBox{}, false
	}
	p.draft = d.draftIn(l, p)
	return p, true
}

// isRule reports whether a row is a rule: s over and over from the first column on, with at most a short label in it.
func isRule(line, s string) bool {
	n := strings.Count(line, s)
	return n >= 8 && strings.HasPrefix(line, s) && 4*n >= 3*utf8.RuneCountInString(line)
}

// ruleAbove is the lowest row above y that is a rule of s, -1 without one.
func (l *Look) ruleAbove(y int, s string) int {
	for y--; y >= 0 && !isRule(l.line(y), s); y-- {
	}
	return y
}

// findBetween finds a box between a rule of upper and one of lower.
func (d *Driver) findBetween(l *Look, upper, lower string) (inputBox, bool) {
	bottom := l.ruleAbove(len(l.Lines), lower)
	top := l.ruleAbove(bottom, upper)
	column := d.box.indent + d.box.text
	if top >= 0 && (upper == lower || l.ruleAbove(bottom, lower) < top) {
		mode, ok := d.glyphAt(l.line(top + 1))
		ok = ok && top+1 < bottom && (upper != lower || indented(l, top+2, bottom, column))
		return inputBox{top: top, bottom: bottom, first: top + 1, last: bottom - 1, column: column, mode: mode}, ok
	}
	// A draft so long that the upper rule left the screen: all above the lower one is its text.
	cut := bottom > 1 && !blank(l.line(0)) && !blank(l.line(bottom-1)) && indented(l, 0, bottom, column)
	return inputBox{top: -1, bottom: bottom, first: 0, last: bottom - 1, column: column, isCut: true}, cut
}

// indented reports whether rows a to b (without b) begin with n blanks or are blank.
func indented(l *Look, a, b, n int) bool {
	for y := a; y < b; y++ {
		if !blank(firstRunes(l.line(y), n)) {
			return false
		}
	}
	return a <= b
}

func (d *Driver) findBarred(l *Look) (inputBox, bool) {
	for y := len(l.Lines) - 1; y > 0; y-- {
		column, ok := columnOf(l.line(y), "╹▀▀")
		if !ok {
			continue
		}
		top := y
		// A message or an error may stand right above the box, barred as well, on another ground.
		for top > 0 && runeAt(l.line(top-1), column) == "┃" && l.row(top-1).background() == l.row(y-1).background() {
			top--
		}
		// One row of padding above the text, one below it and the model's row.
		first, last := top, y-1-d.box.tailRows
		if first < last && blank(skipRunes(l.line(first), column+1)) {
			first++
		}
		// A side bar may stand to the right of the box, whose lower edge tells where it ends.
		edge := skipRunes(l.line(y), column)
		room := ansi.StringWidth(edge) - ansi.StringWidth(strings.TrimLeft(edge, "╹▀"))
		return inputBox{top: top, bottom: y, first: first, last: last, column: column + d.box.text, width: room - d.box.text, isCut: top == 0 && first == top}, y-top > d.box.tailRows
	}
	return inputBox{}, false
}

// findUnframed goes up from the cursor, which is hidden while a dialog stands.
func (d *Driver) findUnframed(l *Look) (inputBox, bool) {
	column := d.box.indent + d.box.text
	if l.Modes.CursorHidden || l.CursorX < column {
		return inputBox{}, false
	}
	for y := min(l.CursorY, len(l.Lines)-1); y >= 0; y-- {
		line := l.line(y)
		if mode, ok := d.glyphAt(line); ok {
			last := l.CursorY
			for !blank(l.line(last + 1)) {
				last++
			}
			return inputBox{top: y, bottom: last, first: y, last: last, column: column, mode: mode}, true
		}
		if !blank(firstRunes(line, column)) {
			break // something else begins here: the cursor is in no box
		}
	}
	return inputBox{}, false
}

// glyphAt reports whether a row begins as a box's first row does, and the mode that its glyph stands for.
func (d *Driver) glyphAt(line string) (mode string, ok bool) {
	if !blank(firstRunes(line, d.box.indent)) {
		return "", false
	}
	line = skipRunes(line, d.box.indent) + " "
	if strings.HasPrefix(line, d.box.glyph+" ") {
		return "", true
	}
	m, ok := findPrefix(line, d.box.modes)
	return m.means, ok
}

// draftIn is the text in the box, without a placeholder.
func (d *Driver) draftIn(l *Look, p inputBox) string {
	var rows []string
	for y := p.first; y <= p.last; y++ {
		row := skipRunes(l.text(y, isBright), p.column)
		if p.width > 0 {
			row = ansi.Truncate(row, p.width, "")
		}
		if row = strings.TrimRight(row, " "); row != "" || len(rows) > 0 {
			rows = append(rows, row)
		}
	}
	draft := strings.TrimRight(strings.Join(rows, "\n"), "\n")
	if startsAny(strings.TrimSpace(draft), d.box.placeholders) {
		return ""
	}
	return draft
}

// cursorAtStart reports whether the cursor stands where the first character typed would go. It does while
// nothing is typed and no redraw is under way: programs take it elsewhere to draw and bring it back last.
func (p inputBox) cursorAtStart(l *Look) bool {
	return l.CursorY >= p.first && l.CursorY <= p.last && l.CursorX >= p.column && l.CursorX <= p.column+1
}
