package driver

import (
	"image/color"
	"strings"

	"github.com/agentteammail/atm/ptyrun/screen"
)

// A Look is a screen as a driver sees it.
type Look struct {
	Lines            []string        // visible rows, right-trimmed, with plain blanks only
	Cells            [][]screen.Cell // the same, cell by cell; nil: nothing is dim, grey or lit
	CursorX, CursorY int
	Title            string
	Modes            screen.Modes
	Cols             int
	// Foreground is the name of the process that has the terminal, where that is not the program we
	// started. Plain only: agents start tools without it.
	Foreground string
	Hidden     bool // the terminal takes lines and does not show them: a password. Plain only
}

// LookAt takes a look at s. Foreground and Hidden are the caller's to add.
func LookAt(s *screen.Screen) Look {
	cols, rows := s.Size()
	x, y := s.Cursor()
	l := Look{CursorX: x, CursorY: y, Title: s.Title(), Modes: s.Modes(), Cols: cols}
	for y := range rows {
		cells := s.Row(y)
		l.Cells = append(l.Cells, cells)
		l.Lines = append(l.Lines, strings.TrimRight(row(cells).text(keepAll), " "))
	}
	return l
}

// A row is the cells of a row of the screen.
type row []screen.Cell

// text is the row with blanks in place of the cells that keep returns false for, and of blanks that do not break.
func (r row) text(keep func(r row, i int) bool) string {
	return strings.ReplaceAll(r.exactText(keep), "\u00a0", " ")
}

// exactText is text with all blanks as they are.
func (r row) exactText(keep func(r row, i int) bool) string {
	var b strings.Builder
	for i, c := range r {
		switch {
		case c.Width == 0 && i > 0 && r[i-1].Width == 2: // the tail of a wide character
		case c.Text != "" && keep(r, i):
			b.WriteString(c.Text)
		default:
			b.WriteString(strings.Repeat(" ", max(1, c.Width)))
		}
	}
	return b.String()
}

func keepAll(row, int) bool { return true }

// isBright is false for dim cells, and for the cursor that a program draws itself, in inverse, over the
// first character of a dim placeholder.
func isBright(r row, i int) bool {
	if i+1 < len(r) && r[i].Inverse && r[i+1].Dim && r[i+1].Text != "" && (i == 0 || !r[i-1].Inverse) {
		return false
	}
	return !r[i].Dim
}

// isStrong is false for dim cells and those in a middling grey, the colour of explanations: a dialog's own
// words are left.
func isStrong(r row, i int) bool {
	isGrey := false
	if r[i].Fg != nil {
		c := color.RGBAModel.Convert(r[i].Fg).(color.RGBA)
		isGrey = c.R == c.G && c.G == c.B && c.R >= 0x50 && c.R <= 0xb8
	}
	return isBright(r, i) && !isGrey
}

// background is the background that most of a row's cells have.
func (r row) background() (most color.Color) {
	count := make(map[color.Color]int)
	for _, c := range r {
		if count[c.Bg]++; count[c.Bg] > count[most] {
			most = c.Bg
		}
	}
	return most
}

func (l *Look) row(y int) row {
	if y < 0 || y >= len(l.Cells) {
		return nil
	}
	return l.Cells[y]
}

func (l *Look) line(y int) string {
	if y < 0 || y >= len(l.Lines) {
		return ""
	}
	return l.Lines[y]
}

// text is line y with blanks in place of the cells that keep returns false for.
func (l *Look) text(y int, keep func(r row, i int) bool) string {
	if l.Cells == nil {
		return l.line(y)
	}
	return strings.TrimRight(l.row(y).text(keep), " ")
}

// highlighted are the cells of row y on a background that is not their row's: the chosen one of several buttons.
func (l *Look) highlighted(y int) string {
	ground := l.row(y).background()
	return l.row(y).text(func(r row, i int) bool { return r[i].Bg != ground || r[i].Inverse })
}

// beforeCursor is the cursor's row up to the cursor.
func (l *Look) beforeCursor() string {
	r := l.row(l.CursorY)
	return r[:min(max(l.CursorX, 0), len(r))].text(keepAll)
}

// afterCursor is what stands right of the cursor and is not dim.
func (l *Look) afterCursor() string {
	return strings.TrimSpace(l.row(l.CursorY).text(func(r row, i int) bool { return i >= l.CursorX && isBright(r, i) }))
}
