package command

import (
	"strings"

	"github.com/agentteammail/atm/internal/letter"
)

const gap = 2 // columns between two cells

// Columns aligns rows of cells. In a narrow terminal a long cell stands out of its column, so that it takes room only
// from its own row, where the second one, a name, is cut before the last one. The first, an id or a time, never is. Each
// column has a colour ("1": bold, "": none).
func (p *Printer) Columns(rows [][]string, colours ...string) (lines []string) {
	const title = 20 // how much of the last cell is worth more than the whole name
	width, widths, last := p.Width(), columnWidths(rows), len(colours)-1
	if !IsColoured(p.Out) {
		colours = make([]string, len(colours))
	}
	isNarrow := width > 0 && lineWidth(widths) >= width
	for n := 1; n < last && isNarrow; n++ {
		widths[n] = min(widths[n], max(8, width/5))
	}
	for _, row := range rows {
		if isNarrow && last > 1 {
			room := width - 1
			for n, cell := range row {
				switch n {
				case 1:
				case last:
					room -= min(letter.Columns(cell), title)
				default:
					room -= max(letter.Columns(cell), widths[n]) + gap
				}
			}
			row[1] = letter.Fit(row[1], max(widths[1], room-gap))
		}
		lines = append(lines, Fit(alignRow(row, widths, colours), width))
	}
	return lines
}

// columnWidths returns how wide each column is. text/tabwriter knows neither widths nor wide characters.
func columnWidths(rows [][]string) (widths []int) {
	for _, row := range rows {
		widths = append(widths, make([]int, max(0, len(row)-len(widths)))...)
		for n, cell := range row {
			widths[n] = max(widths[n], letter.Columns(cell))
		}
	}
	return widths
}

func lineWidth(widths []int) int {
	total := -gap
	for _, w := range widths {
		if w > 0 {
			total += w + gap
		}
	}
	return max(total, 0)
}

func alignRow(row []string, widths []int, colours []string) (line string) {
	for n, cell := range row {
		if widths[n] > 0 {
			line += paint(cell, colours[n]) + strings.Repeat(" ", max(0, widths[n]-letter.Columns(cell))+gap)
		}
	}
	return strings.TrimRight(line, " ")
}

func paint(text, colour string) string {
	if text == "" || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[m"
}

// Fit cuts a line to a terminal's width, whose last column stays free; 0: not at all.
func Fit(line string, width int) string {
	if width == 0 {
		return line
	}
	return letter.Fit(line, max(width-1, 1))
}
