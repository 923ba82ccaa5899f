package driver

import (
	"slices"
	"strings"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/screen"
)

// holds reports whether a condition holds for row y.
func (l *Look) holds(c *agents.Condition, y int) bool {
	return (c.Pattern == nil || c.Pattern.MatchString(l.line(y))) &&
		(c.Styled == nil || *c.Styled == l.isStyled()) &&
		l.hasStyle(c.First, y, l.firstCell) && l.hasStyle(c.Mark, y, l.markCell) &&
		l.hasStyle(c.Gap, y, l.gapCell) && l.hasStyle(c.Letter, y, l.firstLetter) &&
		(c.Ink == nil || *c.Ink == l.hasInk(y)) &&
		(c.Named == nil || l.holds(c.Named, y)) &&
		(c.Above == nil || l.holds(c.Above, y-1)) && (c.Below == nil || l.holds(c.Below, y+1)) &&
		l.countHolding(c.All, y) == len(c.All) && (c.Any == nil || l.countHolding(c.Any, y) > 0) &&
		(c.Not == nil || !l.holds(c.Not, y))
}

// countHolding counts the conditions that hold for row y.
func (l *Look) countHolding(all []agents.Condition, y int) (n int) {
	for i := range all {
		if l.holds(&all[i], y) {
			n++
		}
	}
	return n
}

// The cells of a row that a condition may name.

func (l *Look) firstCell(y int) screen.Cell { return l.cell(0, y) }

func (l *Look) markCell(y int) screen.Cell { return l.cell(margin(l.line(y)), y) }

func (l *Look) gapCell(y int) screen.Cell { return l.cell(margin(l.line(y))+1, y) }

// hasStyle reports whether a cell of row y is drawn in a style; nil: in any.
func (l *Look) hasStyle(s *agents.Style, y int, cellOf func(y int) screen.Cell) bool {
	if s == nil {
		return true
	}
	c, first := cellOf(y), l.firstCell(y)
	has := false
	switch s.Name {
	case agents.Ink:
		has = isInk(c)
	case agents.Muted:
		has = isMuted(c)
	case agents.Coloured:
		has = isColoured(c)
	case agents.Dim:
		has = c.Dim
	case agents.Bold:
		has = c.Bold
	case agents.Hidden:
		has = c.Fg != nil && c.Fg == first.Bg
	case agents.AsFirst:
		has = c.Fg == first.Fg
	case agents.Filled:
		has = c.Bg != nil
	}
	return has != s.Not
}

// hasInk reports whether any visible cell of row y is ink.
func (l *Look) hasInk(y int) bool {
	return slices.ContainsFunc(l.row(y), func(c screen.Cell) bool { return !blank(c.Text) && isInk(c) })
}

// isMutedRow reports whether row y is grey.
func (l *Look) isMutedRow(y int) bool { return isMuted(l.firstLetter(y)) && !l.hasInk(y) }

// A Match is a rule of a driver's file that holds for a screen.
type Match struct {
	Rule  string `json:"rule"`            // its key, such as "rows"
	Means string `json:"means"`           // such as "busy"
	Line  int    `json:"line,omitempty"`  // of the file; 0: see the key
	Row   int    `json:"row"`             // of the screen, from 0 on; -1: it is no row
	Text  string `json:"text"`            // that matched
	Style string `json:"style,omitempty"` // of the row: where it begins with other styles than that of text
}

const noRow = -1

// note remembers for Explain that a rule with a key and a meaning matched. text is what matched; "": the row.
func (l *Look) note(key, means string, line, y int, text string) {
	if l.seen == nil {
		return
	}
	m := Match{Rule: key, Means: means, Line: line, Row: y, Text: text}
	if y != noRow {
		m.Text, m.Style = strings.TrimSpace(l.line(y)), l.styleOf(y)
	}
	if !slices.Contains(*l.seen, m) {
		*l.seen = append(*l.seen, m)
	}
}

// styleOf says how the cells of row y are drawn that conditions name.
func (l *Look) styleOf(y int) string {
	var words []string
	for _, part := range []struct {
		name string
		cell screen.Cell
	}{{"first", l.firstCell(y)}, {"mark", l.markCell(y)}, {"gap", l.gapCell(y)}, {"letter", l.firstLetter(y)}} {
		style := agents.Ink
		switch {
		case isMuted(part.cell):
			style = agents.Muted
		case isColoured(part.cell):
			style = agents.Coloured
		}
		for name, has := range map[string]bool{agents.Dim: part.cell.Dim, agents.Bold: part.cell.Bold} {
			if has {
				style += " " + name
			}
		}
		words = append(words, part.name+" "+style)
	}
	return strings.Join(words, ", ")
}

// matches reports whether a pattern (nil: none) matches a text that is no row.
func (l *Look) matches(p *agents.Pattern, rule, text string) bool {
	if p == nil || !p.MatchString(text) {
		return false
	}
	if l.seen != nil {
		l.note(rule, "", 0, noRow, p.FindString(text))
	}
	return true
}

// hasAny reports whether row y has one of the texts of a list in the driver's file.
func (l *Look) hasAny(y int, texts []string, rule string) bool {
	i := slices.IndexFunc(texts, func(t string) bool { return strings.Contains(l.line(y), t) })
	if i >= 0 {
		l.note(rule, texts[i], 0, y, "")
	}
	return i >= 0
}

// startsAny reports whether a text in row y starts with one of a list in the driver's file.
func (l *Look) startsAny(y int, s string, texts []string, rule string) bool {
	i := slices.IndexFunc(texts, func(t string) bool { return strings.HasPrefix(s, t) })
	if i >= 0 {
		l.note(rule, texts[i], 0, y, "")
	}
	return i >= 0
}

// Explain is Read of a screen that was not seen before, with the rules that hold for it, by rows.
func (d *Driver) Explain(l Look) (Reading, []Match) {
	var seen []Match
	l.seen = &seen
	r := d.Read(l, Reading{})
	if !d.Plain {
		t := d.lookFor(&l)
		for y := range l.Lines {
			t.ruleOf(&l, y)
		}
	}
	slices.SortStableFunc(seen, func(a, b Match) int { return a.Row - b.Row })
	return r, seen
}
