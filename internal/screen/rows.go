package screen

import (
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
)

// History returns how many lines are in the scrollback; the alternate screen has none.
func (s *Screen) History() int {
	if s.Modes().Alt {
		return 0
	}
	return s.emulator.ScrollbackLen()
}

func (s *Screen) cell(x, y int) *uv.Cell {
	if y < 0 {
		return s.emulator.ScrollbackCellAt(x, s.emulator.ScrollbackLen()+y)
	}
	return s.emulator.CellAt(x, y)
}

// Row returns row y, one cell for each column. Negative rows are in the scrollback; -1 is the newest.
func (s *Screen) Row(y int) []Cell {
	row := make([]Cell, s.cols)
	for x := range row {
		row[x] = cellOf(s.cell(x, y))
		if row[x].Width == 0 && (x == 0 || row[x-1].Width != 2) {
			row[x].Width = 1
		}
	}
	return row
}

func cellOf(c *uv.Cell) Cell {
	if c == nil {
		return Cell{Width: 1}
	}
	cell := Cell{
		Text: c.Content, Width: c.Width, Fg: c.Style.Fg, Bg: c.Style.Bg, Bold: c.Style.Attrs&uv.AttrBold != 0,
		Dim: c.Style.Attrs&uv.AttrFaint != 0, Inverse: c.Style.Attrs&uv.AttrReverse != 0,
	}
	if c.Content == " " && c.Style.IsZero() {
		cell.Text = ""
	}
	return cell
}

// Line returns the text of row y, without trailing spaces.
func (s *Screen) Line(y int) string {
	var b strings.Builder
	for _, c := range s.Row(y) {
		if c.Text == "" && c.Width > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(c.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// Lines returns the texts of all visible rows.
func (s *Screen) Lines() []string {
	lines := make([]string, s.rows)
	for y := range lines {
		lines[y] = s.Line(y)
	}
	return lines
}

// Tail returns the last n lines, or all if there are fewer, from the scrollback down to the last visible text.
func (s *Screen) Tail(n int) (lines []string) {
	from, end := s.tail(n)
	for y := from; y < end; y++ {
		lines = append(lines, s.Line(y))
	}
	return lines
}

func (s *Screen) tail(n int) (from, end int) {
	for end = s.rows; end > 0 && s.Line(end-1) == ""; {
		end--
	}
	return max(end-n, -s.History()), end
}
