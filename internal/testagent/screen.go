package testagent

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Looks.
const (
	reset   = "\x1b[0m"
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	inverse = "\x1b[7m"
	upright = "\x1b[27m"
	noBreak = "\u00a0"
	braille = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
)

func rgb(r, g, b int) string { return fmt.Sprintf("\x1b[38;2;%d;%d;%dm", r, g, b) }

func ground(r, g, b int) string { return fmt.Sprintf("\x1b[48;2;%d;%d;%dm", r, g, b) }

func rule(glyph string, width int) string { return strings.Repeat(glyph, max(width, 0)) }

// cycle is the glyph of a spinner at its n-th step.
func cycle(glyphs string, n int) string {
	all := []rune(glyphs)
	return string(all[n%len(all)])
}

// wrap breaks a text at its line breaks, and lines that are too wide.
func wrap(s string, width int) []string {
	return strings.Split(ansi.Wrap(strings.ReplaceAll(s, "\t", "    "), max(width, 1), ""), "\n")
}

// fit cuts a text to a width, or fills it up with spaces.
func fit(s string, width int) string {
	s = ansi.Truncate(s, max(width, 0), "")
	return s + rule(" ", width-ansi.StringWidth(s))
}

// cut is fit without the spaces.
func cut(s string, width int) string { return ansi.Truncate(s, max(width, 0), "") }

// apart puts one text at the left and one at the right, the last column at width.
func apart(left, right string, width int) string {
	gap := width - ansi.StringWidth(left) - ansi.StringWidth(right)
	if gap < 1 {
		return left
	}
	return left + rule(" ", gap) + right
}

// lastLines are the last n, at least one.
func lastLines(lines []string, n int) []string { return lines[max(len(lines)-max(n, 1), 0):] }

// box is a rounded frame around lines, so wide.
func box(sgr string, lines []string, width int) []string {
	out := []string{sgr + "╭" + rule("─", width-2) + "╮"}
	for _, line := range lines {
		out = append(out, sgr+"│"+reset+fit(" "+line+reset, width-2)+sgr+"│")
	}
	return append(out, sgr+"╰"+rule("─", width-2)+"╯")
}

// block is a piece of the transcript, drawn for a width.
type block func(width int) []string

// paragraph is a text with a mark before its first line, and as much room before the others. An
// empty line goes before it.
func paragraph(mark, sgr, text string) block {
	return func(width int) []string {
		out := []string{""}
		indent := ansi.StringWidth(mark)
		for i, line := range wrap(text, width-indent) {
			if i > 0 {
				mark = rule(" ", indent)
			}
			out = append(out, mark+sgr+line)
		}
		return out
	}
}

// frame is the part of the screen that changes, and where the cursor stands in it.
type frame struct {
	lines  []string
	x, y   int
	cursor bool // it is visible
}

// painter brings frames to the terminal. An inline one keeps the frame below what was written
// before, on the main screen, and lets that scroll away; a full one owns the alternate screen.
type painter struct {
	out    io.Writer
	isFull bool
	rows   int

	drawn frame
	title string
}

// draw shows a frame, inline under the new lines of the transcript. The title goes first, so that a
// reader never sees the new screen under the old one.
func (p *painter) draw(fresh []string, f frame, title string) {
	if over := len(f.lines) - p.rows; over > 0 {
		f.lines, f.y = f.lines[over:], max(f.y-over, 0)
	}
	var b strings.Builder
	if title != p.title {
		b.WriteString("\x1b]0;" + title + "\x07")
		p.title = title
	}
	if len(fresh) > 0 || !slices.Equal(f.lines, p.drawn.lines) || f.x != p.drawn.x || f.y != p.drawn.y {
		b.WriteString("\x1b[?2026h\x1b[?25l")
		if p.isFull {
			p.full(&b, f)
		} else {
			p.inline(&b, fresh, f)
		}
		if f.cursor {
			b.WriteString("\x1b[?25h")
		}
		b.WriteString("\x1b[?2026l")
		p.drawn = f
	}
	io.WriteString(p.out, b.String())
}

func (p *painter) inline(b *strings.Builder, fresh []string, f frame) {
	b.WriteString("\r")
	up(b, p.drawn.y)
	for _, line := range fresh {
		b.WriteString("\x1b[2K" + line + reset + "\r\n")
	}
	b.WriteString("\x1b[2K" + strings.Join(f.lines, reset+"\r\n\x1b[2K") + reset + "\x1b[J\r")
	up(b, len(f.lines)-1-f.y)
	fmt.Fprintf(b, "\x1b[%dG", f.x+1)
}

func (p *painter) full(b *strings.Builder, f frame) {
	for i := range p.rows {
		line, old := "", ""
		if i < len(f.lines) {
			line = f.lines[i]
		}
		if i < len(p.drawn.lines) {
			old = p.drawn.lines[i]
		}
		if line != old {
			fmt.Fprintf(b, "\x1b[%d;1H"+reset+"\x1b[2K%s"+reset, i+1, line)
		}
	}
	fmt.Fprintf(b, "\x1b[%d;%dH", f.y+1, f.x+1)
}

func up(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, "\x1b[%dA", n)
	}
}

// clear begins the screen anew: its size is another.
func (p *painter) clear() {
	p.drawn = frame{}
	io.WriteString(p.out, "\x1b[H\x1b[2J\x1b[3J")
}
