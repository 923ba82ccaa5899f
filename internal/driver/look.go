package driver

import (
	"image/color"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/screen"
)

// A Look is the input of a driver: the screen and some facts about the terminal.
type Look struct {
	Lines            []string        // visible rows, right-trimmed, with plain blanks only
	Cells            [][]screen.Cell // the same rows; nil means without styles
	CursorX, CursorY int
	Title            string
	Declared         screen.Status // what the program says outright that it does; empty: nothing
	Modes            screen.Modes
	// Foreground is the name of the foreground process, if that is not the program we started. For plain programs only:
	// agents start tools without the terminal.
	Foreground string
	Hidden     bool // echo is off, as for a password; for plain programs only
}

// LookAt returns the Look of a screen. The caller adds Foreground and Hidden.
func LookAt(s *screen.Screen) Look {
	l := Look{Title: s.Title(), Modes: s.Modes()}
	l.Declared, _ = s.Status()
	l.CursorX, l.CursorY = s.Cursor()
	_, rows := s.Size()
	for y := range rows {
		cells := s.Row(y)
		text, _ := rowText(cells, func(int) bool { return true })
		l.Cells, l.Lines = append(l.Cells, cells), append(l.Lines, strings.TrimRight(text, " "))
	}
	return l
}

// rowText returns the text of the cells that keep accepts, with blanks in place of the others and of no-break spaces, and
// where each cell begins in it.
func rowText(cells []screen.Cell, keep func(x int) bool) (text string, at []int) {
	var b strings.Builder
	for x, c := range cells {
		at = append(at, b.Len())
		switch {
		case c.Width == 0: // the second cell of a wide character
		case c.Text == "" || c.Text == "\u00a0" || !keep(x):
			b.WriteString(strings.Repeat(" ", max(1, c.Width)))
		default:
			b.WriteString(c.Text)
		}
	}
	return b.String(), at
}

// isBright is false for dim cells, and for the inverse cell that a program draws as a cursor over the first character
// of a dim placeholder.
func isBright(r []screen.Cell, x int) bool {
	isSingle := r[x].Inverse && (x == 0 || !r[x-1].Inverse)
	isBeforePlaceholder := x+1 < len(r) && r[x+1].Dim && r[x+1].Text != ""
	return !r[x].Dim && !(isSingle && isBeforePlaceholder)
}

// brightPart returns what is drawn brightly of bytes from to end of row y.
func (l *Look) brightPart(y, from, end int) string {
	if l.Cells == nil {
		return l.line(y)[from:end]
	}
	cells := l.Cells[y]
	_, at := rowText(cells, func(int) bool { return true })
	text, _ := rowText(cells, func(x int) bool { return at[x] >= from && at[x] < end && isBright(cells, x) })
	return strings.TrimRight(strings.TrimPrefix(text, strings.Repeat(" ", columnAt(at, from))), " ")
}

// columnAt returns the column of the cell that begins at a byte of its row.
func columnAt(at []int, byte int) int {
	x, _ := slices.BinarySearch(at, byte)
	return x
}

func (l *Look) line(y int) string {
	if y < 0 || y >= len(l.Lines) {
		return ""
	}
	return l.Lines[y]
}

// A region is what an area's pattern sees: rows of the screen.
type region struct {
	look       *Look
	first, end int
	text       string // with line breaks between them
}

// regionOf returns what an area of the driver's file has: rows of the screen, or of a shell the cursor's row.
func (d *Driver) regionOf(l *Look, a *agents.Area) region {
	if d.Plain {
		y := min(max(l.CursorY, 0), max(0, len(l.Lines)-1))
		return region{l, y, min(y+1, len(l.Lines)), l.typedRow()}
	}
	end := len(l.Lines)
	for end > 0 && l.Lines[end-1] == "" {
		end--
	}
	first := 0
	if a.Last > 0 {
		first = max(0, end-a.Last)
	}
	return region{l, first, end, strings.Join(l.Lines[first:end], "\n")}
}

// typedRow returns the cursor's row up to the cursor, and what is right behind it: not what a shell draws at the right margin,
// or in grey as a suggestion.
func (l *Look) typedRow() string {
	if l.CursorY < 0 || l.CursorY >= len(l.Cells) {
		return ""
	}
	cells := l.Cells[l.CursorY]
	x := min(max(l.CursorX, 0), len(cells))
	before, _ := rowText(cells[:x], func(int) bool { return true })
	after, _ := rowText(cells[x:], func(i int) bool { return isBright(cells, x+i) })
	after, _, _ = strings.Cut(after, "    ")
	text := before + strings.TrimRight(after, " ")
	for y := l.CursorY - 1; y >= 0 && ansi.StringWidth(l.Lines[y]) >= len(cells)-1; y-- { // a command that goes on below
		text = l.Lines[y] + text
	}
	return text
}

// rowAt returns the row of the screen in which a byte of the region's text is, and where the row begins in that text.
func (g *region) rowAt(byte int) (y, start int) {
	before := g.text[:byte]
	return g.first + strings.Count(before, "\n"), strings.LastIndexByte(before, '\n') + 1
}

// find returns where the pattern of an area matches the region, as regexp.FindStringSubmatchIndex does; nil: it does not.
func (g *region) find(a *agents.Area) []int {
	if a.Pattern == nil {
		return nil
	}
	return a.Pattern.FindStringSubmatchIndex(g.text)
}

// shows reports whether a screen shows what an area says.
func (d *Driver) shows(l *Look, a *agents.Area) bool {
	g := d.regionOf(l, a)
	return a.Title != nil && a.Title.MatchString(strings.TrimSpace(l.Title)) || g.find(a) != nil
}

// standsOut returns the index of the column in row y whose background differs most from that of the row; -1: none does.
func (l *Look) standsOut(y int, columns []int) int {
	if l.Cells == nil {
		return -1
	}
	cells, count := l.Cells[y], map[color.Color]int{}
	var ground color.Color
	for _, c := range cells {
		if count[c.Bg]++; count[c.Bg] > count[ground] {
			ground = c.Bg
		}
	}
	most, selected := 0, -1
	for i, x := range columns {
		if x >= len(cells) {
			continue
		}
		switch n := contrast(cells[x], ground); {
		case n > most:
			most, selected = n, i
		case n == most:
			selected = -1
		}
	}
	return selected
}

// contrast says how much a cell's background stands out from another one; 0: it is the same.
func contrast(c screen.Cell, ground color.Color) int {
	switch {
	case c.Inverse:
		return 4 * 0xff
	case c.Bg == ground:
		return 0
	case c.Bg == nil || ground == nil:
		return 3 * 0xff
	}
	distance := func(a, b uint8) int { return int(max(a, b) - min(a, b)) }
	v, w := color.RGBAModel.Convert(c.Bg).(color.RGBA), color.RGBAModel.Convert(ground).(color.RGBA)
	return distance(v.R, w.R) + distance(v.G, w.G) + distance(v.B, w.B)
}

func blank(s string) bool { return strings.Trim(s, " \t") == "" }

// RemoveBlanks removes all blanks, tabs and newlines. Texts are compared in this form because programs wrap and indent
// them.
func RemoveBlanks(s string) string { return strings.Join(strings.Fields(s), "") }

func startsAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(s, t) })
}
