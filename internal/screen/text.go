package screen

import (
	"strings"
	"unicode/utf8"
)

// maxTexts bounds the table of single-rune texts that Row keeps.
const maxTexts = 4096

// Row is the visible row y, always as many cells as the screen has columns. The
// slice is overwritten by the next call.
func (s *Screen) Row(y int) []Cell {
	if cap(s.view) < s.cols {
		s.view = make([]Cell, s.cols)
	}
	s.view = s.view[:s.cols]
	r := s.grid.row(y)
	for x := range s.view {
		c := r.at(x)
		v := Cell{Width: 1, Style: c.style()}
		switch {
		case c.tail():
			v.Width = 0
		case c.wide():
			v.Width = 2
			fallthrough
		default:
			v.Text = s.cellText(c.char())
		}
		s.view[x] = v
	}
	return s.view
}

const asciiTexts = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

func (s *Screen) cellText(ch uint32) string {
	switch {
	case ch == 0:
		return ""
	case ch < 0x7f:
		return asciiTexts[ch-' ' : ch-' '+1]
	case ch&clusterBit != 0:
		return s.cluster(ch)
	}
	t, ok := s.texts[rune(ch)]
	if !ok {
		if s.texts == nil || len(s.texts) >= maxTexts {
			s.texts = make(map[rune]string)
		}
		t = string(rune(ch))
		s.texts[rune(ch)] = t
	}
	return t
}

// appendChar appends the text of a cell's character, a space for a blank one.
func (s *Screen) appendChar(b []byte, ch uint32) []byte {
	switch {
	case ch == 0:
		return append(b, ' ')
	case ch < utf8.RuneSelf:
		return append(b, byte(ch))
	case ch&clusterBit != 0:
		return append(b, s.cluster(ch)...)
	}
	return utf8.AppendRune(b, rune(ch))
}

// lineText is the text of a row without the spaces at its end.
func (s *Screen) lineText(r *row) string {
	b := s.buf[:0]
	for _, c := range r.cells[:r.n] {
		if !c.tail() {
			b = s.appendChar(b, c.char())
		}
	}
	s.buf = b
	n := len(b)
	for n > 0 && b[n-1] == ' ' {
		n--
	}
	return string(b[:n])
}

// Line is the text of the visible row y, without the spaces at its end. Rows
// below 0 are those of the scrollback, as many as History says; -1 is the newest.
func (s *Screen) Line(y int) string { return s.lineText(s.grid.row(y)) }

// Lines are the texts of all visible rows.
func (s *Screen) Lines() []string {
	lines := make([]string, s.rows)
	for y := range lines {
		lines[y] = s.Line(y)
	}
	return lines
}

// Tail is the last n lines up to the last visible one with text on it, reaching
// into the scrollback; fewer if there are no more.
func (s *Screen) Tail(n int) []string {
	end := s.rows
	for end > 0 && !s.grid.row(end-1).textual() {
		end--
	}
	first := max(end-max(n, 0), -s.grid.hist)
	lines := make([]string, 0, end-first)
	for y := first; y < end; y++ {
		lines = append(lines, s.lineText(s.grid.row(y)))
	}
	return lines
}

// History is how many lines of the scrollback are kept: none of the alternate
// screen.
func (s *Screen) History() int { return s.grid.hist }

// Wrapped says that the row y goes on from the row above: a soft wrap.
// Row 0 may go on from the newest line of the scrollback.
func (s *Screen) Wrapped(y int) bool {
	return y > -s.grid.hist && s.grid.row(y-1).wraps
}

// ANSI is the screen as text with SGR sequences, one line a row. Each line
// begins and ends in the default style.
func (s *Screen) ANSI() string {
	var b strings.Builder
	for y := range s.rows {
		b.Write(s.appendRow(nil, s.grid.row(y), false))
		b.WriteByte('\n')
	}
	return b.String()
}
