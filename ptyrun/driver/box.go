package driver

import (
	"cmp"
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
	top, bottom int // rows of the box with its edges; top is -1 if it is above the screen
	first, last int // rows of the text
	column      int // of the text in its first row
	end         int // column in which it ends; 0: that of the screen
	draft       string
	mode        control.Gate // what the mark before the text means, if that is not the usual one
	foot        control.Gate // what the rows around the box mean: GateBusy, a turn is open; or why nothing may be typed
	notice      string       // what they say of that
}

// findBox finds the lowest input box, which must be at the bottom of the screen; nil: there is none.
func (d *Driver) findBox(l *Look) *inputBox {
	var p inputBox
	ok := false
	box := &d.screen.Box
	switch {
	case box.Text == nil:
		return nil
	case box.Bottom == nil:
		p, ok = d.findOpenBox(l)
	case box.Top == nil:
		p, ok = d.findBoxAbove(l)
	default:
		p, ok = d.findBoxBetween(l)
	}
	if !ok || !d.readBox(l, &p) {
		return nil
	}
	l.note("box.text", "", 0, p.first, "")
	filled := 0
	for y := p.bottom + 1; y < len(l.Lines); y++ {
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
	p.foot, p.notice = d.gateAround(l, p)
	return &p
}

// usualBelow is how many rows below a box may be filled if its file does not say.
const usualBelow = 8

// gateAround returns the gate that the upper edge of a box or the rows below it show, and the row's text from there on.
func (d *Driver) gateAround(l *Look, p inputBox) (gate control.Gate, notice string) {
	for _, f := range d.screen.Box.Below {
		for y := max(0, p.top); y < len(l.Lines); y++ {
			_, after, ok := strings.Cut(l.line(y), f.Text)
			if isText := p.first <= y && y <= p.bottom; ok && !isText && d.kindOf(l, y) != agents.WaitsRow {
				l.note("box.below", f.Means, f.Line, y, "")
				return control.Gate(f.Means), f.Text + after
			}
		}
	}
	return "", ""
}

// findBoxBetween finds a box with two edges.
func (d *Driver) findBoxBetween(l *Look) (p inputBox, ok bool) {
	lower := l.lastMatch(d.screen.Box.Bottom, len(l.Lines), "box.bottom")
	p.top = l.lastMatch(d.screen.Box.Top, lower, "box.top")
	p.first = p.top + 1
	d.setBottom(l, &p, lower)
	// With a long draft the upper edge is above the screen, and all rows above the lower one are its text; the cursor at its
	// end may have a row of its own.
	isFull := p.top >= 0 || d.screen.Box.More != nil && !blank(l.line(0)) && !blank(l.line(p.last)) || l.CursorY == p.last
	return p, p.first <= p.last && isFull
}

// findBoxAbove finds a box with a lower edge alone: its rows are those of a text, on one background.
func (d *Driver) findBoxAbove(l *Look) (p inputBox, ok bool) {
	lower := l.lastMatch(d.screen.Box.Bottom, len(l.Lines), "box.bottom")
	d.setBottom(l, &p, lower)
	for y := p.last; y >= 0 && l.row(y).background() == l.row(p.last).background(); y-- {
		pattern, _ := d.firstRow(l, y)
		if pattern != nil {
			p.first, p.top, ok = y, y, true
		}
		if more := d.screen.Box.More; more == nil && pattern != nil || more != nil && !fits(l.line(y), more) {
			break
		}
	}
	return p, ok
}

// setBottom sets what is known of a box by its lower edge in row y: the group of that says how wide it is.
func (d *Driver) setBottom(l *Look, p *inputBox, y int) {
	edge := d.screen.Box.Bottom
	p.last, p.bottom = y-1, y+edge.Rows-1
	if y < 0 || edge.NumSubexp() == 0 {
		return
	}
	text := strings.Join(l.Lines[y:y+edge.Rows], "\n")
	_, end := groupIn(edge, text)
	p.end = ansi.StringWidth(text[strings.LastIndexByte(text[:end], '\n')+1 : end])
}

// groupIn returns where the first group of a pattern that takes part in its match is in a text, else what is behind its match;
// -1: it does not match.
func groupIn(p *agents.Pattern, text string) (start, end int) {
	m := p.FindStringSubmatchIndex(text)
	if m == nil {
		return -1, -1
	}
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			return m[i], m[i+1]
		}
	}
	return m[1], len(text)
}

// maxRows is how many rows the text in a box without a lower edge may have.
const maxRows = 30

// findOpenBox finds a box without a lower edge: the rows around the cursor, which a dialog hides; or in a transcript, which
// has none, the last ones.
func (d *Driver) findOpenBox(l *Look) (p inputBox, ok bool) {
	box := &d.screen.Box
	from := len(l.Lines) - 1
	for from > 0 && blank(l.line(from)) {
		from--
	}
	p.last = from
	switch isTranscript := l.CursorX < 0; {
	case isTranscript:
	case !l.Modes.CursorHidden:
		from = min(l.CursorY, len(l.Lines)-1)
		for p.last = from; !blank(l.line(p.last + 1)); p.last++ {
		}
	case !box.DrawsCursor:
		return p, false
	}
	isTop := func(y int) bool { return box.Top != nil && box.Top.MatchString(l.line(y)) }
	for p.first = from; p.first >= max(0, from-maxRows); p.first-- {
		if pattern, _ := d.firstRow(l, p.first); pattern != nil && (box.Top == nil || isTop(p.first-1)) {
			for p.top = p.first; isTop(p.top - 1); p.top-- {
			}
			p.bottom = p.last
			return p, true
		}
	}
	return p, false
}

// lastMatch returns the first of the lowest rows above row end that a pattern matches, which has a key in the driver's file;
// -1: there are none.
func (l *Look) lastMatch(p *agents.Pattern, end int, key string) int {
	for y := end - p.Rows; y >= 0; y-- {
		if p.MatchString(strings.Join(l.Lines[y:y+p.Rows], "\n")) {
			l.note(key, "", 0, y, "")
			return y
		}
	}
	return -1
}

// padded returns a row with the blanks behind it that a pattern may want between a mark and a text that is empty.
func padded(line string, p *agents.Pattern) string {
	if p.MatchString(line) {
		return line
	}
	return line + "        "
}

// fits reports whether a row fits a pattern of rows of the box.
func fits(line string, p *agents.Pattern) bool { return p.MatchString(padded(line, p)) }

// firstRow returns the pattern that row y fits as the first one of a text, and the mode that it shows; nil: none.
func (d *Driver) firstRow(l *Look, y int) (*agents.Pattern, control.Gate) {
	box := &d.screen.Box
	if y >= 0 && fits(l.line(y), box.Text) {
		return box.Text, ""
	}
	for i := range box.Modes {
		if m := &box.Modes[i]; y >= 0 && fits(l.line(y), &m.Pattern) {
			return &m.Pattern, control.Gate(m.Means)
		}
	}
	return nil, ""
}

// beginsBox reports whether row y may be the first one of a text.
func (d *Driver) beginsBox(l *Look, y int) bool {
	pattern, _ := d.firstRow(l, y)
	return pattern != nil
}

// readBox reads the text in the rows of a box, and reports whether they are a text's.
func (d *Driver) readBox(l *Look, p *inputBox) bool {
	box := &d.screen.Box
	pattern, mode := d.firstRow(l, p.first)
	if isCut := p.top < 0 || box.Cut != nil && box.Cut.MatchString(l.line(p.top)); isCut {
		pattern, mode = box.More, ""
	}
	var rows []string
	for y := p.first; y <= p.last; y++ {
		if y > p.first && box.More != nil {
			pattern = box.More
		}
		var text string
		at := p.column
		switch {
		case pattern != nil && (y == p.first || box.More != nil):
			var ok bool
			if text, at, ok = l.draftIn(y, pattern, p.end); !ok {
				return false
			}
		case pattern == nil || !blank(firstRunes(l.line(y), p.column)):
			return false
		default:
			text = skipRunes(l.text(y, isBright), p.column)
		}
		if y == p.first {
			p.column = at
		}
		if text = strings.TrimRight(text, " \u200b"); text != "" || len(rows) > 0 {
			rows = append(rows, text)
		}
	}
	p.mode = mode
	p.draft = strings.TrimRight(strings.Join(rows, "\n"), "\n")
	if l.startsAny(p.first, strings.Join(strings.Fields(p.draft), " "), box.Placeholders, "box.placeholders") {
		p.draft = ""
	}
	return !fits("", box.Text) || l.isTyped(*p)
}

// draftIn returns what the group of a pattern has in row y up to the column edge (0: all), without what is dim, and its column.
func (l *Look) draftIn(y int, p *agents.Pattern, edge int) (text string, column int, ok bool) {
	line := padded(l.line(y), p)
	start, end := groupIn(p, line)
	if start < 0 {
		return "", 0, false
	}
	column = utf8.RuneCountInString(line[:start])
	width := ansi.StringWidth(line[start:end])
	if edge > 0 {
		width = min(width, max(0, edge-column))
	}
	return ansi.Truncate(skipRunes(l.text(y, isBright), column), width, ""), column, true
}

// isTyped reports whether a box without a mark before its text holds one: it has the cursor, where there is any, and no row
// without ink, as a dialog has that is drawn in its place.
func (l *Look) isTyped(p inputBox) bool {
	for y := p.first; y <= p.last; y++ {
		if !blank(l.line(y)) && !l.hasInk(y) {
			return false
		}
	}
	return p.top >= 0 && (l.CursorX < 0 || l.hasCursorIn(p.first, p.last))
}

// hasCursorIn reports whether a cursor is in rows first to last: the terminal's, or one that the program draws.
func (l *Look) hasCursorIn(first, last int) bool {
	for y := first; y <= last; y++ {
		if !l.Modes.CursorHidden && l.CursorY == y || slices.ContainsFunc(l.row(y), func(c screen.Cell) bool { return c.Inverse }) {
			return true
		}
	}
	return false
}

// hasCursorAtStart reports whether the cursor is where the first character would go. Programs move it away to redraw
// and restore it last; a hidden one elsewhere means that the program draws its own.
func (d *Driver) hasCursorAtStart(l *Look, p *inputBox) bool {
	if d.screen.Box.DrawsCursor {
		c := l.cell(p.column, p.first)
		if isDrawn := c.Inverse || strings.ContainsAny(c.Text, "▏▎▍▌▋▊▉█"); isDrawn || l.Modes.CursorHidden {
			return isDrawn
		}
	}
	return l.CursorY >= p.first && l.CursorY <= p.last && l.CursorX >= p.column && l.CursorX <= p.column+1
}

// isRule reports whether a row is a rule: s repeated from the first column on, perhaps with a short label in it.
func isRule(line, s string) bool {
	n := strings.Count(line, s)
	return n >= 8 && strings.HasPrefix(line, s) && 4*n >= 3*utf8.RuneCountInString(line)
}
