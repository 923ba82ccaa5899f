package driver

import (
	"image/color"
	"slices"
	"strings"
	"unicode"

	"github.com/agentteammail/atm/ptyrun/screen"
)

// A Look is the input of a driver: the screen and some facts about the terminal.
type Look struct {
	Lines            []string        // visible rows, right-trimmed, with plain blanks only
	Cells            [][]screen.Cell // the same rows; nil means without colours
	CursorX, CursorY int
	Title            string
	Progress         screen.Progress
	Declared         screen.Status // what the program says outright that it does; empty: nothing
	IsStill          bool          // nothing has changed for long: a title or progress bar that shows work was left behind
	Modes            screen.Modes
	Cols             int
	// Foreground is the name of the foreground process, if that is not the program we started. For plain programs only:
	// agents start tools without the terminal.
	Foreground string
	Hidden     bool // echo is off, as for a password; for plain programs only

	styled int      // isStyled: 1 yes, -1 no, 0 not known yet
	seen   *[]Match // what matched, for Explain; nil: nobody asks
}

// LookAt returns the Look of a screen. The caller adds Foreground and Hidden.
func LookAt(s *screen.Screen) Look {
	_, rows := s.Size()
	x, y := s.Cursor()
	l := lookOf(s)
	l.CursorX, l.CursorY = x, y
	for y := range rows {
		l.addRow(s.Row(y))
	}
	return l
}

// Transcript returns a Look of the last n lines of a screen and its scrollback, without a cursor.
func Transcript(s *screen.Screen, n int) Look {
	l := lookOf(s)
	for _, row := range s.TailRows(n) {
		l.addRow(row)
	}
	l.CursorX, l.CursorY = -1, len(l.Lines)-1
	return l
}

func lookOf(s *screen.Screen) Look {
	cols, _ := s.Size()
	declared, _ := s.Status()
	return Look{Title: s.Title(), Progress: s.Progress(), Declared: declared, Modes: s.Modes(), Cols: cols}
}

func (l *Look) addRow(cells []screen.Cell) {
	l.Cells = append(l.Cells, cells)
	l.Lines = append(l.Lines, strings.TrimRight(row(cells).text(keepAll), " "))
}

// removeScrollBar blanks the last column where a scroll bar is drawn in it, which comes and goes beside a text that stays
// the same. bar has its characters; "": there is none.
func (l *Look) removeScrollBar(bar string) {
	if bar == "" {
		return
	}
	l.Cells, l.Lines = slices.Clone(l.Cells), slices.Clone(l.Lines)
	for y, cells := range l.Cells {
		at := l.Cols - 1
		if at < 1 || len(cells) <= at || blank(cells[at].Text) || !strings.Contains(bar, cells[at].Text) || !blank(cells[at-1].Text) {
			continue
		}
		l.Cells[y] = slices.Clone(cells)
		l.Cells[y][at] = screen.Cell{Width: 1}
		l.Lines[y] = strings.TrimRight(row(l.Cells[y]).text(keepAll), " ")
	}
}

type row []screen.Cell

// text is exactText with plain blanks in place of no-break spaces.
func (r row) text(keep func(r row, i int) bool) string {
	return strings.ReplaceAll(r.exactText(keep), "\u00a0", " ")
}

// exactText returns the text of the row, with blanks for the cells that keep rejects.
func (r row) exactText(keep func(r row, i int) bool) string {
	var b strings.Builder
	for i, c := range r {
		switch {
		case c.Width == 0: // the second cell of a wide character
		case c.Text != "" && keep(r, i):
			b.WriteString(c.Text)
		default:
			b.WriteString(strings.Repeat(" ", max(1, c.Width)))
		}
	}
	return b.String()
}

func keepAll(row, int) bool { return true }

// isBright is false for dim cells, and for the inverse cell that a program draws as a cursor over the first character
// of a dim placeholder.
func isBright(r row, i int) bool {
	isSingle := r[i].Inverse && (i == 0 || !r[i-1].Inverse)
	isBeforePlaceholder := i+1 < len(r) && r[i+1].Dim && r[i+1].Text != ""
	isCursor := isSingle && isBeforePlaceholder
	return !r[i].Dim && !isCursor
}

// The styles that tell a program's own rows from an answer: see package agents.

func isInk(c screen.Cell) bool { return !isMuted(c) && !isColoured(c) }

func isMuted(c screen.Cell) bool { return c.Dim || isGrey(c.Fg) }

func isColoured(c screen.Cell) bool {
	if c.Fg == nil || c.Dim {
		return false
	}
	darkest, brightest := partsOf(c.Fg)
	return brightest-darkest > tint
}

// isGrey reports whether a colour is a medium grey.
func isGrey(fg color.Color) bool {
	if fg == nil {
		return false
	}
	darkest, brightest := partsOf(fg)
	return brightest-darkest <= tint && darkest >= 0x50 && brightest <= 0xc0
}

// tint is how far the parts of a colour are apart that is no more than a warm or cold grey, black or white: some themes
// have only such ones.
const tint = 0x0c

// partsOf returns the least and the greatest of a colour's red, green and blue.
func partsOf(c color.Color) (darkest, brightest uint8) {
	v := color.RGBAModel.Convert(c).(color.RGBA)
	return min(v.R, v.G, v.B), max(v.R, v.G, v.B)
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

// isStyled reports whether the program draws with styles at all. With NO_COLOR Claude Code does not.
func (l *Look) isStyled() bool {
	if l.styled == 0 {
		l.styled = -1
		for _, r := range l.Cells {
			if slices.ContainsFunc(r, func(c screen.Cell) bool { return c.Fg != nil || c.Dim || c.Bold }) {
				l.styled = 1
				break
			}
		}
	}
	return l.styled > 0
}

// cell returns the cell in column x of row y.
func (l *Look) cell(x, y int) screen.Cell {
	if r := l.row(y); x < len(r) {
		return r[x]
	}
	return screen.Cell{Width: 1}
}

// firstLetter returns the first cell of row y that has a letter or digit.
func (l *Look) firstLetter(y int) screen.Cell {
	r := l.row(y)
	for x := range r {
		if strings.ContainsFunc(r[x].Text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
			return r[x]
		}
	}
	return screen.Cell{Width: 1}
}

// background returns the most frequent background of the row's cells.
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

// text returns line y, with blanks for the cells that keep rejects.
func (l *Look) text(y int, keep func(r row, i int) bool) string {
	if l.Cells == nil {
		return l.line(y)
	}
	return strings.TrimRight(l.row(y).text(keep), " ")
}

// beforeCursor returns the cursor's row up to the cursor.
func (l *Look) beforeCursor() string {
	r := l.row(l.CursorY)
	return r[:min(max(l.CursorX, 0), len(r))].text(keepAll)
}

// afterCursor returns the text after the cursor that is neither dim nor at the right margin.
func (l *Look) afterCursor() string {
	text := l.row(l.CursorY).text(func(r row, i int) bool { return i >= l.CursorX && isBright(r, i) })
	after, _, _ := strings.Cut(skipRunes(text, l.CursorX), "    ")
	return strings.TrimSpace(after)
}

// Columns are counted in runes here, because only frames, glyphs and blanks precede them, which are one cell wide.

func blank(s string) bool { return strings.Trim(s, " \t") == "" }

// margin counts the blanks at the start of s.
func margin(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

func firstRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

func lastRunes(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}

func skipRunes(s string, n int) string { return s[len(firstRunes(s, n)):] }

// RemoveBlanks removes all blanks, tabs and newlines. Texts are compared in this form because programs wrap and indent
// them.
func RemoveBlanks(s string) string { return strings.Join(strings.Fields(s), "") }

// solidRows is RemoveBlanks of rows a to b (exclusive).
func (l *Look) solidRows(a, b int) string {
	return RemoveBlanks(strings.Join(l.Lines[min(max(a, 0), len(l.Lines)):min(max(a, b, 0), len(l.Lines))], ""))
}

// solidFoot is RemoveBlanks of the last five rows, without the blank ones below them.
func (l *Look) solidFoot() string {
	end := len(l.Lines)
	for end > 0 && blank(l.line(end-1)) {
		end--
	}
	return l.solidRows(end-5, end)
}

func hasAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(s, t) })
}

func startsAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(s, t) })
}
