package driver

import (
	"strings"

	"github.com/agentteammail/atm/ptyrun/screen"
)

// A Look is a screen as a driver sees it. Bright and Strong may be shorter than
// Lines or nil: a row they lack is taken as Lines has it; one that Lit lacks is
// taken as empty.
type Look struct {
	Lines   []string       // visible rows, right-trimmed
	Bright  []string       // the same without dim cells and the placeholder they make
	Strong  []string       // the same without dim and grey cells: a dialog's own words, without the explanation in grey
	Lit     []string       // the same, only cells on a background that is not their row's: the chosen one of several buttons
	Ground  []screen.Color // each row's background, the one that most of its cells have; nil: one like the other
	CursorX int
	CursorY int
	Before  string // the cursor's row up to the cursor; "" with CursorX > 0: cut from Lines as if all cells were narrow
	Title   string
	Modes   screen.Modes
	Cols    int
	// Foreground is the name of the process that has the terminal, where that
	// is not the program we started. Plain only: agents start tools without it.
	Foreground string
}

// LookAt takes a look at s. Foreground is the caller's to add.
func LookAt(s *screen.Screen) Look {
	cols, rows := s.Size()
	x, y := s.Cursor()
	l := Look{
		Lines: make([]string, rows), Bright: make([]string, rows), Strong: make([]string, rows), Lit: make([]string, rows),
		Ground:  make([]screen.Color, rows),
		CursorX: x, CursorY: y, Title: s.Title(), Modes: s.Modes(), Cols: cols,
	}
	b := make([]byte, 0, 4*cols)
	// text is the row with only those cells that keep returns true for.
	text := func(cells []screen.Cell, keep func(i int) bool) string {
		b = b[:0]
		for i := range cells {
			c := &cells[i]
			switch {
			case c.Width == 0 && i > 0 && cells[i-1].Width == 2: // the tail of a wide character
			case c.Text != "" && (keep == nil || keep(i)):
				b = append(b, c.Text...)
			case c.Width == 2:
				b = append(b, "  "...)
			default:
				b = append(b, ' ')
			}
		}
		return string(b)
	}
	trim := func(s string) string { return strings.TrimRight(s, " ") }
	for r := range rows {
		cells := s.Row(r)
		ground := commonGround(cells)
		l.Ground[r] = ground
		var dim, grey, lit bool
		for i := range cells {
			dim = dim || cells[i].Style.Attr&screen.Dim != 0
			grey = grey || isGrey(cells[i].Style.Fg)
			lit = lit || isLit(cells[i], ground)
		}
		line := trim(text(cells, nil))
		l.Lines[r], l.Bright[r], l.Strong[r] = line, line, line
		faint := func(i int) bool { return cells[i].Style.Attr&screen.Dim != 0 || overPlaceholder(cells, i) }
		if dim {
			l.Bright[r] = trim(text(cells, func(i int) bool { return !faint(i) }))
			l.Strong[r] = l.Bright[r]
		}
		if grey {
			l.Strong[r] = trim(text(cells, func(i int) bool { return !faint(i) && !isGrey(cells[i].Style.Fg) }))
		}
		if lit {
			l.Lit[r] = trim(text(cells, func(i int) bool { return isLit(cells[i], ground) }))
		}
		if r == y {
			l.Before = text(cells[:min(x, len(cells))], nil)
		}
	}
	return l
}

func isLit(c screen.Cell, ground screen.Color) bool {
	return c.Style.Bg != ground || c.Style.Attr&screen.Inverse != 0
}

// overPlaceholder reports whether cell i is the cursor that a program draws
// itself, in inverse, over the first character of a dim placeholder.
func overPlaceholder(cells []screen.Cell, i int) bool {
	return cells[i].Style.Attr&screen.Inverse != 0 && cells[i].Text != "" &&
		i+1 < len(cells) && cells[i+1].Style.Attr&screen.Dim != 0 && cells[i+1].Text != "" &&
		(i == 0 || cells[i-1].Style.Attr&screen.Inverse == 0)
}

// commonGround returns the background that most of a row's cells have: where
// two are equally common, the one that reaches that count first.
func commonGround(cells []screen.Cell) screen.Color {
	var grounds [4]struct {
		ground screen.Color
		n      int
	}
	best := 0
	for n := range cells {
		c := &cells[n]
		for i := range grounds {
			g := &grounds[i]
			if g.n > 0 && g.ground != c.Style.Bg {
				continue
			}
			g.ground = c.Style.Bg
			if g.n++; g.n > grounds[best].n {
				best = i
			}
			break
		}
	}
	return grounds[best].ground
}

func (l *Look) bright(y int) string { return rowOf(l.Bright, l.Lines, y) }
func (l *Look) strong(y int) string { return rowOf(l.Strong, l.Lines, y) }

func (l *Look) lit(y int) string { return rowOf(l.Lit, nil, y) }

func (l *Look) line(y int) string { return rowOf(l.Lines, nil, y) }

// sameGround reports whether rows a and b have the same background.
func (l *Look) sameGround(a, b int) bool {
	return a >= len(l.Ground) || b >= len(l.Ground) || l.Ground[a] == l.Ground[b]
}

func rowOf(rows, otherwise []string, y int) string {
	switch {
	case y >= 0 && y < len(rows):
		return rows[y]
	case y >= 0 && y < len(otherwise):
		return otherwise[y]
	}
	return ""
}

// before is the cursor's row up to the cursor.
func (l *Look) before() string {
	if l.Before != "" || l.CursorX <= 0 {
		return l.Before
	}
	return head(l.line(l.CursorY), l.CursorX)
}

// after is what stands right of the cursor and is not dim.
func (l *Look) after() string {
	before := l.before()
	// Dim cells are blanked cell by cell, so both rows are cut alike unless a
	// dim wide character stands left of the cursor; then too much is cut, which
	// only a prompt drawn so could notice.
	n := len([]rune(before))
	r := []rune(l.bright(l.CursorY))
	if n >= len(r) {
		return ""
	}
	return strings.TrimSpace(string(r[n:]))
}

// isGrey reports whether c is a middling grey, the colour of explanations.
func isGrey(c screen.Color) bool {
	if r, g, b, ok := c.RGB(); ok {
		return r == g && g == b && r >= 0x50 && r <= 0xb8
	}
	i, ok := c.Palette()
	return ok && (i == 8 || i >= 240 && i <= 249)
}

// head is the first n runes of s, padded with blanks.
func head(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s + strings.Repeat(" ", min(n, 4096))
}
