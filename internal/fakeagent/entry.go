package fakeagent

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

func textWidth(s string) int { return displaywidth.String(s) }

// entry is a piece of the transcript, before it is fitted to a width.
type entry struct {
	mark string // before the first line
	hang string // before the others
	text string
	sgr  string                   // how the text looks
	draw func(width int) []string // in place of all that
	gap  bool                     // an empty line goes before it
}

func (e entry) lines(width int) []string {
	var out []string
	if e.gap {
		out = append(out, "")
	}
	if e.draw != nil {
		return append(out, e.draw(width)...)
	}
	before := e.mark
	for _, line := range wrap(e.text, width-textWidth(plainText(e.mark))) {
		if e.sgr != "" && line != "" {
			line = e.sgr + line + reset
		}
		out = append(out, before+line)
		before = e.hang
	}
	return out
}

// wrap breaks a text at its line breaks, and lines that are too wide at spaces
// or, where there are none, anywhere between characters.
func wrap(s string, width int) []string {
	width = max(width, 1)
	var out []string
lines:
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.ReplaceAll(line, "\t", "    ")
		for textWidth(line) > width {
			cut, space, w := 0, -1, 0
			for g := displaywidth.StringGraphemes(line); g.Next(); {
				if w += g.Width(); w > width && cut > 0 {
					break
				}
				cut += len(g.Value())
				if g.Value() == " " {
					space = cut
				}
			}
			if space > 0 && cut < len(line) && line[cut] != ' ' {
				cut = space
			}
			out = append(out, strings.TrimRight(line[:cut], " "))
			if line = strings.TrimLeft(line[cut:], " "); line == "" {
				continue lines
			}
		}
		out = append(out, line)
	}
	return out
}

// fit cuts a plain text to a width, or fills it up with spaces.
func fit(s string, width int) string {
	w := 0
	end := 0
	for g := displaywidth.StringGraphemes(s); g.Next(); {
		if w+g.Width() > width {
			break
		}
		w += g.Width()
		end += len(g.Value())
	}
	return s[:end] + strings.Repeat(" ", max(width-w, 0))
}

// apart puts one text at the left and one at the right, the last column at
// width.
func apart(left, right string, width int) string {
	gap := width - textWidth(plainText(left)) - textWidth(plainText(right))
	if gap < 1 {
		return left
	}
	return left + strings.Repeat(" ", gap) + right
}

// plainText is a text without its colours.
func plainText(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		j := strings.IndexByte(s[i:], 'm')
		if j < 0 {
			return b.String()
		}
		s = s[i+j+1:]
	}
}

// Colours.
const (
	reset   = "\x1b[0m"
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	inverse = "\x1b[7m"
	upright = "\x1b[27m"
)

// rgb is a colour of the text. Placeholders and hints are often grey,
// and not dim.
func rgb(r, g, b string) string { return "\x1b[38;2;" + r + ";" + g + ";" + b + "m" }

func paper(r, g, b string) string { return "\x1b[48;2;" + r + ";" + g + ";" + b + "m" }

func rule(glyph string, width int) string { return strings.Repeat(glyph, max(width, 0)) }
