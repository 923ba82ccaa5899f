package driver

import "strings"

// A shape is how an input box is drawn.
type shape int

const (
	noBox    shape = iota
	ruled          // between two rules ──── of the whole width
	halves         // between ▄▄▄▄ and ▀▀▀▀
	barred         // rows that begin with ┃, the last ╹▀▀▀▀
	unframed       // a glyph in the first column, and the cursor
)

// A box says how a program's input box looks.
type box struct {
	shape        shape
	glyph        string   // before the text
	indent       int      // columns before the glyph
	text         int      // columns from the glyph to the text
	tail         int      // barred: rows at the end of the box that are not text
	modes        []note   // glyphs that take the place of glyph, and what they mean
	placeholders []string // how texts begin that stand in an empty box and are not drawn dim
	lacks        []string // the rows below have none of these, else it is no box
	below        int      // at most so many rows that are not blank stand below it
	early        string   // all that stands below it, under an empty title, while the program still starts
}

// A note is a text and what its presence is called.
type note struct{ has, why string }

// A place is where the input box was found.
type place struct {
	top, bottom int // rows of the box with its frame
	first, last int // rows of the text
	column      int // of the text
	room        int // cells that a row of the text has; 0: to the end of the row
	draft       string
	mode        string // what the glyph means, when it is not the usual one
	cut         bool   // the upper edge is not on the screen
}

// find returns the lowest input box on l, if it stands where the program draws
// it: at the bottom.
func (d *Driver) find(l *Look) (place, bool) {
	var p place
	ok := false
	switch d.box.shape {
	case ruled:
		p, ok = d.findRuled(l)
	case halves:
		p, ok = d.findHalves(l)
	case barred:
		p, ok = d.findBarred(l)
	case unframed:
		p, ok = d.findUnframed(l)
	}
	if !ok {
		return place{}, false
	}
	filled := 0
	for y := p.bottom + 1; y < len(l.Lines); y++ {
		line := l.line(y)
		if blank(line) {
			continue
		}
		filled++
		for _, s := range d.box.lacks {
			if strings.Contains(line, s) {
				return place{}, false
			}
		}
	}
	if filled > d.box.below {
		return place{}, false
	}
	p.draft = d.draftIn(l, p)
	return p, true
}

// isRule reports whether a row is a rule: s over and over from the first column
// on, with at most a short label in it.
func isRule(line, s string) bool {
	n := strings.Count(line, s)
	return n >= 8 && strings.HasPrefix(line, s) && 4*n >= 3*len([]rune(line))
}

func (d *Driver) findRuled(l *Look) (place, bool) {
	bottom := -1
	for y := len(l.Lines) - 1; y >= 0; y-- {
		if !isRule(l.line(y), "─") {
			continue
		}
		if bottom < 0 {
			bottom = y
			continue
		}
		if mode, ok := d.glyphAt(l.line(y + 1)); ok && y+1 < bottom && indented(l, y+2, bottom, d.box.text) {
			return place{top: y, bottom: bottom, first: y + 1, last: bottom - 1, column: d.box.indent + d.box.text, mode: mode}, true
		}
		return place{}, false
	}
	// A draft so long that the upper rule left the screen: all above the lower
	// one is its text.
	if bottom > 1 && !blank(l.line(0)) && !blank(l.line(bottom-1)) && indented(l, 0, bottom, d.box.text) {
		return place{top: -1, bottom: bottom, first: 0, last: bottom - 1, column: d.box.text, cut: true}, true
	}
	return place{}, false
}

// indented reports whether rows a to b (without b) begin with n blanks or are
// blank.
func indented(l *Look, a, b, n int) bool {
	for y := a; y < b; y++ {
		if line := l.line(y); !blank(line) && !blank(head(line, n)) {
			return false
		}
	}
	return a <= b
}

func (d *Driver) findHalves(l *Look) (place, bool) {
	for y := len(l.Lines) - 1; y >= 0; y-- {
		if !isRule(l.line(y), "▀") {
			continue
		}
		for top := y - 1; top >= 0; top-- {
			line := l.line(top)
			if isRule(line, "▀") {
				break
			}
			if isRule(line, "▄") {
				mode, ok := d.glyphAt(l.line(top + 1))
				return place{top: top, bottom: y, first: top + 1, last: y - 1, column: d.box.indent + d.box.text, mode: mode}, ok && top+1 < y
			}
		}
		if n := d.box.indent + d.box.text; y > 1 && !blank(l.line(0)) && !blank(l.line(y-1)) && indented(l, 0, y, n) {
			return place{top: -1, bottom: y, first: 0, last: y - 1, column: n, cut: true}, true
		}
		return place{}, false
	}
	return place{}, false
}

func (d *Driver) findBarred(l *Look) (place, bool) {
	for y := len(l.Lines) - 1; y > 0; y-- {
		column, ok := cutBefore(l.line(y), "╹▀▀")
		if !ok {
			continue
		}
		top := y
		// A message or an error may stand right above the box, barred as well, on
		// another ground.
		for top > 0 && runeAt(l.line(top-1), column) == "┃" && l.sameGround(top-1, y-1) {
			top--
		}
		if y-top <= d.box.tail {
			return place{}, false
		}
		// One row of padding above the text, one below it and the model's row.
		first, last := top, y-1-d.box.tail
		if first < last && blank(after(l.line(first), column+1)) {
			first++
		}
		// A side bar may stand to the right of the box, whose lower edge tells
		// where it ends.
		edge := after(l.line(y), column)
		room := len([]rune(edge)) - len([]rune(strings.TrimLeft(edge, "╹▀")))
		return place{top: top, bottom: y, first: first, last: last, column: column + d.box.text, room: room - d.box.text, cut: top == 0 && first == top}, true
	}
	return place{}, false
}

// findUnframed goes up from the cursor, which is hidden while a dialog stands.
func (d *Driver) findUnframed(l *Look) (place, bool) {
	if l.Modes.CursorHidden {
		return place{}, false
	}
	for y := min(l.CursorY, len(l.Lines)-1); y >= 0; y-- {
		line := l.line(y)
		if mode, ok := d.glyphAt(line); ok {
			last := l.CursorY
			for last+1 < len(l.Lines) && !blank(l.line(last+1)) {
				last++
			}
			return place{top: y, bottom: last, first: y, last: last, column: d.box.indent + d.box.text, mode: mode}, l.CursorX >= d.box.indent+d.box.text
		}
		if !blank(line) && !blank(head(line, d.box.indent+d.box.text)) {
			break // something else begins here: the cursor is in no box
		}
	}
	return place{}, false
}

// glyphAt reports whether a row begins as a box's first row does, and the mode
// that its glyph stands for.
func (d *Driver) glyphAt(line string) (mode string, ok bool) {
	line = strings.ReplaceAll(line, "\u00a0", " ")
	if !blank(head(line, d.box.indent)) {
		return "", false
	}
	rest := after(line, d.box.indent)
	if startsGlyph(rest, d.box.glyph) {
		return "", true
	}
	for _, m := range d.box.modes {
		if startsGlyph(rest, m.has) {
			return m.why, true
		}
	}
	return "", false
}

// startsGlyph reports whether s is glyph, alone or followed by a blank.
func startsGlyph(s, glyph string) bool {
	rest, ok := strings.CutPrefix(s, glyph)
	return ok && (rest == "" || rest[0] == ' ')
}

// draftIn is the text in the box, without a placeholder.
func (d *Driver) draftIn(l *Look, p place) string {
	var rows []string
	for y := p.first; y <= p.last; y++ {
		row := after(l.bright(y), p.column)
		if p.room > 0 {
			row = cells(row, p.room)
		}
		rows = append(rows, strings.TrimRight(strings.ReplaceAll(row, "\u00a0", " "), " "))
	}
	for len(rows) > 0 && blank(rows[len(rows)-1]) {
		rows = rows[:len(rows)-1]
	}
	for len(rows) > 0 && blank(rows[0]) {
		rows = rows[1:]
	}
	draft := strings.Join(rows, "\n")
	for _, s := range d.box.placeholders {
		if strings.HasPrefix(strings.TrimSpace(draft), s) {
			return ""
		}
	}
	return draft
}

// cursorAtStart reports whether the cursor stands where the first character
// typed would go. It does while nothing is typed and no redraw is under way:
// programs take it elsewhere to draw and bring it back last.
func (p place) cursorAtStart(l *Look) bool {
	return l.CursorY >= p.first && l.CursorY <= p.last && l.CursorX >= p.column && l.CursorX <= p.column+1
}
