package driver

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A shape is the way in which a program draws its input box, and the dialog that replaces it.
type shape int

const (
	noBox    shape = iota
	ruled          // between two rules ──── of the full width; a dialog below one rule
	halves         // between ▄▄▄▄ and ▀▀▀▀; a dialog in a frame ╭│╰
	barred         // rows that start with ┃, the last ╹▀▀▀▀; a dialog without that last row
	unframed       // a glyph in the first column, and the cursor; a dialog below the last row that is not indented
)

// A boxStyle describes the input box of a program.
type boxStyle struct {
	shape        shape
	glyph        string   // before the text
	indent       int      // columns before the glyph
	text         int      // columns from the glyph to the text
	tailRows     int      // barred: rows at the end of the box without text
	modes        []phrase // other glyphs, each with a blank, and the mode that each shows
	placeholders []string // prefixes of texts that an empty box shows, not dim
	maxBelow     int      // the largest number of rows below the box that are not blank
	startingFoot string   // the text below the box while the program starts, with an empty title
}

// A phrase is a text on the screen and what it means.
type phrase struct{ text, means string }

// An inputBox is the input box on a screen.
type inputBox struct {
	top, bottom int // rows of the box with its frame; top is -1 if it is above the screen
	first, last int // rows of the text
	column      int // of the text
	width       int // cells of a row of the text; 0 means to the end of the row
	draft       string
	mode        string // meaning of a glyph that is not the usual one
	foot        string // meaning of the rows below: busyFoot, or why nothing may be typed
}

// What a text below the box may mean beside a reason why nothing may be typed.
const (
	busyFoot = "busy"    // a turn is open
	notBox   = "not box" // it is never below a box
)

// findBox finds the lowest input box, which must be at the bottom of the screen; nil: there is none.
func (d *Driver) findBox(l *Look) *inputBox {
	var p inputBox
	ok := false
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
		if !blank(l.line(y)) {
			filled++
		}
		for _, ph := range d.foot {
			if strings.Contains(l.line(y), ph.text) && (p.foot == "" || ph.means == busyFoot || ph.means == notBox) {
				p.foot = ph.means
			}
		}
	}
	if !ok || filled > d.box.maxBelow || p.foot == notBox {
		return nil
	}
	p.draft = d.draftIn(l, p)
	return &p
}

// isRule reports whether a row is a rule: s repeated from the first column on, perhaps with a short label in it.
func isRule(line, s string) bool {
	n := strings.Count(line, s)
	return n >= 8 && strings.HasPrefix(line, s) && 4*n >= 3*utf8.RuneCountInString(line)
}

// ruleAbove returns the lowest rule of s above row y, or -1.
func (l *Look) ruleAbove(y int, s string) int {
	for y--; y >= 0 && !isRule(l.line(y), s); y-- {
	}
	return y
}

// findBetween finds a box between a rule of upper and a rule of lower.
func (d *Driver) findBetween(l *Look, upper, lower string) (inputBox, bool) {
	bottom := l.ruleAbove(len(l.Lines), lower)
	top := l.ruleAbove(bottom, upper)
	column := d.box.indent + d.box.text
	if top < 0 || upper != lower && l.ruleAbove(bottom, lower) > top {
		// With a long draft the upper rule is above the screen, and all rows above the lower one are its text; the cursor at
		// its end may have a row of its own.
		isFull := !blank(l.line(0)) && !blank(l.line(bottom-1)) || l.CursorY == bottom-1
		return inputBox{top: -1, bottom: bottom, last: bottom - 1, column: column}, bottom > 1 && isFull && isIndented(l, 0, bottom, column)
	}
	mode, ok := d.glyphAt(l.line(top + 1))
	ok = ok && top+1 < bottom && (upper != lower || isIndented(l, top+2, bottom, column))
	return inputBox{top: top, bottom: bottom, first: top + 1, last: bottom - 1, column: column, mode: mode}, ok
}

// isIndented reports whether rows a to b (exclusive) start with n blanks or are blank.
func isIndented(l *Look, a, b, n int) bool {
	for y := a; y < b; y++ {
		if !blank(firstRunes(l.line(y), n)) {
			return false
		}
	}
	return a <= b
}

func (d *Driver) findBarred(l *Look) (inputBox, bool) {
	for y := len(l.Lines) - 1; y > 0; y-- {
		column, isBarred := margin(l.line(y)), func(y int) bool { return strings.HasPrefix(strings.TrimSpace(l.line(y)), "┃") }
		if !strings.HasPrefix(l.line(y)[column:], "╹▀▀") {
			continue
		}
		top := y
		// A barred message or error may be right above the box, on another background.
		for top > 0 && isBarred(top-1) && l.row(top-1).background() == l.row(y-1).background() {
			top--
		}
		// There is a row of padding above the text and one below it, then the row of the model.
		first, last := top, y-1-d.box.tailRows
		if first < last && blank(skipRunes(l.line(first), column+1)) {
			first++
		}
		// There may be a side bar to the right of the box, whose lower edge shows where it ends.
		edge := skipRunes(l.line(y), column)
		room := ansi.StringWidth(edge) - ansi.StringWidth(strings.TrimLeft(edge, "╹▀"))
		return inputBox{top: top, bottom: y, first: first, last: last, column: column + d.box.text, width: room - d.box.text}, y-top > d.box.tailRows
	}
	return inputBox{}, false
}

// findUnframed searches upwards from the cursor, which a dialog hides.
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
			break // not a row of a box
		}
	}
	return inputBox{}, false
}

// glyphAt reports whether a row starts like the first row of a box, and the mode that its glyph shows.
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

// draftIn returns the text in the box, or "" for a placeholder.
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
	if startsAny(strings.Join(strings.Fields(draft), " "), d.box.placeholders) {
		return ""
	}
	return draft
}

// hasCursorAtStart reports whether the cursor is where the first character would go. Programs move it away to redraw
// and restore it last.
func (p *inputBox) hasCursorAtStart(l *Look) bool {
	return l.CursorY >= p.first && l.CursorY <= p.last && l.CursorX >= p.column && l.CursorX <= p.column+1
}
