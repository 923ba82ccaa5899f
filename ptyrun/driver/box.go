package driver

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/screen"
)

// An inputBox is the input box on a screen.
type inputBox struct {
	top, bottom int // rows of the box with its frame; top is -1 if it is above the screen
	first, last int // rows of the text
	column      int // of the text
	width       int // cells of a row of the text; 0 means to the end of the row
	isRest      bool
	draft       string
	drawsCursor bool         // where it hides the terminal's
	mode        control.Gate // what a glyph that is not the usual one means
	foot        control.Gate // what the rows below the box mean: GateBusy, a turn is open; or why nothing may be typed
	notice      string       // what they say of that
}

// findBox finds the lowest input box, which must be at the bottom of the screen; nil: there is none.
func (d *Driver) findBox(l *Look) *inputBox {
	var p inputBox
	ok := false
	box := &d.screen.Box
	switch box.Shape {
	case agents.Rules:
		if box.Glyph == "" {
			p, ok = d.findUnmarked(l)
		} else if p, ok = d.findBetween(l, "─", "─"); !ok && box.IsCentred {
			p, ok = d.findCentred(l)
		}
	case agents.Halves:
		if p, ok = d.findBetween(l, "▄", "▀"); !ok {
			p, ok = d.findBetween(l, "─", "─")
		}
	case agents.Bars:
		p, ok = d.findBarred(l)
	case agents.Framed:
		p, ok = d.findFramed(l)
	case agents.Glyph:
		p, ok = d.findAfterGlyph(l)
	case agents.Rest:
		p, ok = d.findRest(l)
	}
	if !ok {
		return nil
	}
	first, end, filled := p.bottom+1, len(l.Lines), 0
	if box.Shape == agents.Rest { // what is below any other box is above this one
		first, end = p.top, p.first
	}
	for y := first; y < end; y++ {
		if !blank(l.line(y)) {
			filled++
		}
		if l.hasAny(y, box.NeverBelow, "box.never_below") {
			return nil
		}
	}
	if filled > cmp.Or(box.MaxBelow, usualBelow) {
		return nil
	}
	p.drawsCursor = box.DrawsCursor
	p.foot, p.notice = d.gateIn(l, first, end)
	p.draft = d.draftIn(l, p)
	return &p
}

// usualBelow is how many rows below a box may be filled if its file does not say.
const usualBelow = 8

// gateIn returns the gate that rows first to end (exclusive) show, and the row's text from there on.
func (d *Driver) gateIn(l *Look, first, end int) (gate control.Gate, notice string) {
	for _, f := range d.screen.Box.Below {
		for y := first; y < end; y++ {
			if _, after, ok := strings.Cut(l.line(y), f.Text); ok && d.kindOf(l, y) != agents.WaitsRow {
				l.note("box.below", f.Means, f.Line, y, "")
				return control.Gate(f.Means), f.Text + after
			}
		}
	}
	return "", ""
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
	column := d.screen.Box.Indent + d.screen.Box.Column
	if top < 0 || upper != lower && l.ruleAbove(bottom, lower) > top {
		// With a long draft the upper rule is above the screen, and all rows above the lower one are its text; the cursor at
		// its end may have a row of its own.
		isFull := !blank(l.line(0)) && !blank(l.line(bottom-1)) || l.CursorY == bottom-1
		return inputBox{top: -1, bottom: bottom, last: bottom - 1, column: column}, bottom > 1 && isFull && isIndented(l, 0, bottom, column)
	}
	mode, ok := d.glyphAt(l.line(top + 1))
	if upper == lower && moreAbove.MatchString(l.line(top)) {
		mode, ok = "", isIndented(l, top+1, top+2, column)
	}
	ok = ok && top+1 < bottom && (upper != lower || isIndented(l, top+2, bottom, column))
	return inputBox{top: top, bottom: bottom, first: top + 1, last: bottom - 1, column: column, mode: mode}, ok
}

// moreAbove matches the upper rule of a box that shows only the end of a long draft.
var moreAbove = regexp.MustCompile(`─ ↑ \d+ more ─`)

// findCentred finds a box between two rules that begin in the same column, behind blanks.
func (d *Driver) findCentred(l *Look) (p inputBox, ok bool) {
	left := 0
	ruleAbove := func(y int) int {
		for y--; y >= 0 && !isRule(skipRunes(l.line(y), left), "─"); y-- {
			if left == 0 && isRule(strings.TrimLeft(l.line(y), " "), "─") {
				left = margin(l.line(y))
				break
			}
		}
		return y
	}
	p.bottom = ruleAbove(len(l.Lines))
	p.top = ruleAbove(p.bottom)
	p.first, p.last, p.column = p.top+1, p.bottom-1, left+d.screen.Box.Indent+d.screen.Box.Column
	p.mode, ok = d.glyphAt(skipRunes(l.line(p.first), left))
	return p, ok && p.top >= 0 && margin(l.line(p.top)) == left && p.first <= p.last && isIndented(l, p.first+1, p.bottom, p.column)
}

// findUnmarked finds a box without a glyph between two rules. Dialogs are drawn in its place: they have no cursor, or a row
// without ink, such as one that names keys.
func (d *Driver) findUnmarked(l *Look) (p inputBox, ok bool) {
	bottom := l.ruleAbove(len(l.Lines), "─")
	top := l.ruleAbove(bottom, "─")
	for y := top + 1; y < bottom; y++ {
		if !blank(l.line(y)) && !l.hasInk(y) {
			return p, false
		}
		ok = ok || slices.ContainsFunc(l.row(y), func(c screen.Cell) bool { return c.Inverse })
	}
	column := d.screen.Box.Indent + d.screen.Box.Column
	return inputBox{top: top, bottom: bottom, first: top + 1, last: bottom - 1, column: column}, ok && top >= 0
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
		first, last := top, y-1-d.screen.Box.TailRows
		if first < last && blank(skipRunes(l.line(first), column+1)) {
			first++
		}
		// There may be a side bar to the right of the box, whose lower edge shows where it ends.
		edge := skipRunes(l.line(y), column)
		room := ansi.StringWidth(edge) - ansi.StringWidth(strings.TrimLeft(edge, "╹▀"))
		return inputBox{top: top, bottom: y, first: first, last: last, column: column + d.screen.Box.Column, width: room - d.screen.Box.Column}, y-top > d.screen.Box.TailRows
	}
	return inputBox{}, false
}

// findFramed finds a box in a frame whose top is on the screen. A dialog in such a frame has no glyph.
func (d *Driver) findFramed(l *Look) (p inputBox, ok bool) {
	for p.bottom = len(l.Lines) - 1; p.bottom > 0 && !strings.HasPrefix(l.line(p.bottom), "╰─"); p.bottom-- {
	}
	isMoved := func(y int) bool { return strings.TrimSpace(l.line(y)) == "│" } // the frame's right side, behind a tab
	for p.top = p.bottom - 1; p.top >= 0 && (strings.HasPrefix(l.line(p.top), "│") || isMoved(p.top)); p.top-- {
	}
	p.first, p.last, p.column = p.top+1, p.bottom-1, 1+d.screen.Box.Indent+d.screen.Box.Column
	p.width = ansi.StringWidth(l.line(p.top)) - 1 - p.column
	p.mode, ok = d.glyphAt(skipRunes(l.line(p.first), 1))
	for y := p.first + 1; y <= p.last; y++ {
		ok = ok && (isMoved(y) || blank(firstRunes(skipRunes(l.line(y), 1), p.column-1)))
	}
	return p, ok && p.first <= p.last && strings.HasPrefix(l.line(p.top), "╭─")
}

// findAfterGlyph searches upwards from the cursor, which a dialog hides.
func (d *Driver) findAfterGlyph(l *Look) (inputBox, bool) {
	column := d.screen.Box.Indent + d.screen.Box.Column
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

// maxRest is how many rows the text in the rest of the screen may have.
const maxRest = 20

// findRest finds the last rows of the screen, below what the program says there about itself.
func (d *Driver) findRest(l *Look) (p inputBox, ok bool) {
	for p.last = len(l.Lines) - 1; p.last > l.CursorY && blank(l.line(p.last)); p.last-- {
	}
	box := &d.screen.Box
	hasGlyph := func(y int) bool { return box.Glyph != "" && strings.HasPrefix(l.line(y)+"  ", box.Glyph+"  ") }
	isFoot := func(y int) bool { return y >= 0 && box.Above.MatchString(l.line(y)) }
	for p.first = p.last; !hasGlyph(p.first) && !isFoot(p.first-1); p.first-- {
		if p.first <= max(0, p.last-maxRest) {
			return p, false
		}
	}
	if hasGlyph(p.first) {
		p.column = d.screen.Box.Column
	}
	for p.top = p.first; isFoot(p.top - 1); p.top-- {
	}
	p.bottom, p.isRest = p.last, true
	isDialog := cancelHint.MatchString(l.solidRows(p.first, p.last+1))
	return p, p.top < p.first && (p.column > 0 || !box.NeedsGlyph && !isDialog)
}

// glyphAt reports whether a row starts like the first row of a box, and the mode that its glyph shows.
func (d *Driver) glyphAt(line string) (mode control.Gate, ok bool) {
	box := &d.screen.Box
	if !blank(firstRunes(line, box.Indent)) {
		return "", false
	}
	line = skipRunes(line, box.Indent) + " "
	if strings.HasPrefix(line, box.Glyph+" ") {
		return "", true
	}
	m, ok := findPrefix(line, box.Modes)
	return control.Gate(m.Means), ok
}

// draftIn returns the text in the box, or "" for a placeholder.
func (d *Driver) draftIn(l *Look, p inputBox) string {
	var rows []string
	for y := p.first; y <= p.last; y++ {
		row := l.text(y, isBright)
		if y == p.first || !p.isRest {
			row = skipRunes(row, p.column)
		}
		if p.width > 0 {
			row = ansi.Truncate(row, p.width, "")
		}
		if row = strings.TrimRight(row, " \u200b"); row != "" || len(rows) > 0 {
			rows = append(rows, row)
		}
	}
	draft := strings.TrimRight(strings.Join(rows, "\n"), "\n")
	if l.startsAny(p.first, strings.Join(strings.Fields(draft), " "), d.screen.Box.Placeholders, "box.placeholders") {
		return ""
	}
	return draft
}

// hasCursorAtStart reports whether the cursor is where the first character would go. Programs move it away to redraw
// and restore it last; a hidden one elsewhere means that the program draws its own.
func (p *inputBox) hasCursorAtStart(l *Look) bool {
	if p.drawsCursor {
		c := l.cell(p.column, p.first)
		if isDrawn := c.Inverse || strings.ContainsAny(c.Text, "▏▎▍▌▋▊▉█"); isDrawn || l.Modes.CursorHidden {
			return isDrawn
		}
	}
	if p.isRest {
		return l.CursorY == p.first && l.CursorX <= p.column+1 && !l.Modes.CursorHidden || l.cell(p.column, p.first).Inverse
	}
	return l.CursorY >= p.first && l.CursorY <= p.last && l.CursorX >= p.column && l.CursorX <= p.column+1
}
