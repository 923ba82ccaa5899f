package web

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/internal/letter"
)

// A span is a piece of a screen in one style, given as classes of the style sheet.
type span struct{ Class, Text string }

// spans splits a screen's text with its SGR sequences into spans; a line feed ends each line.
func spans(screen string) (out []span) {
	text := uv.NewStyledString(screen)
	cells := uv.NewScreenBuffer(text.Bounds().Dx(), text.Bounds().Dy())
	text.Draw(cells, cells.Bounds())
	for _, line := range cells.Lines {
		for _, cell := range line {
			out = appendSpan(out, classesOf(cell.Style), cell.Content)
		}
		if n := len(out) - 1; n >= 0 && out[n].Class == "" {
			out[n].Text = strings.TrimRight(out[n].Text, " ")
		}
		out = appendSpan(out, "", "\n")
	}
	return out
}

// appendSpan appends text to the last span if that has the same style, else as a new span.
func appendSpan(out []span, class, text string) []span {
	text = letter.Reveal(text)
	if n := len(out) - 1; n >= 0 && out[n].Class == class {
		out[n].Text += text
		return out
	}
	return append(out, span{class, text})
}

// classesOf returns the classes of a style. A colour becomes the nearest of the palette of 256; the style sheet defines
// the first sixteen itself, to suit its background.
func classesOf(s uv.Style) string {
	var classes []string
	colors, isReversed := []color.Color{s.Fg, s.Bg}, s.Attrs&uv.AttrReverse != 0
	if isReversed {
		slices.Reverse(colors)
	}
	for i, c := range colors {
		if basic, ok := c.(ansi.BasicColor); ok {
			c = ansi.IndexedColor(basic)
		}
		if c != nil {
			classes = append(classes, fmt.Sprintf("%c%d", "fb"[i], ansi.Convert256(c)))
		} else if isReversed {
			classes = append(classes, []string{"fi", "bi"}[i])
		}
	}
	for i, class := range []string{"bold", "faint", "italic", "", "", "", "", "struck"} { // the order of uv's bits
		if class != "" && s.Attrs&(1<<i) != 0 {
			classes = append(classes, class)
		}
	}
	if s.Underline != 0 {
		classes = append(classes, "under")
	}
	return strings.Join(classes, " ")
}

// staticFile returns a file that pages use. It adds the classes of the palette's colours to the style sheet. Reversed
// text in one of the first sixteen has the colour that normal text has as its background.
func staticFile(name string) []byte {
	data, _ := static.ReadFile("static/" + name)
	if name != "style.css" {
		return data
	}
	for i := range 256 {
		if i < 16 {
			data = fmt.Appendf(data, ".f%d{color:var(--c%[1]d)}.fi.b%[1]d{background:var(--c%[1]d)}\n", i)
			continue
		}
		r, g, b, _ := ansi.IndexedColor(i).RGBA()
		data = fmt.Appendf(data, ".f%d{color:#%02x%02x%02x}.b%[1]d{background:#%02[2]x%02[3]x%02[4]x}\n", i, r>>8, g>>8, b>>8)
	}
	return data
}
