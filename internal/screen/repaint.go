package screen

import (
	"cmp"
	"fmt"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
)

// reset brings an xterm-like terminal back to its normal state: main screen, modes off, default style. Text and title
// stay; an open link ends.
const reset = "\x1b]8;;\x1b\\\x1b7\x1b[?1049l\x1b[!p\x1b[?7h\x1b[4l\x1b[20l\x1b[?1l\x1b>\x1b[?5l" +
	"\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?1007l" +
	"\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?2031l\x1b[=0u\x1b[>4;0m\x1b[0 q\x1b(B\x0f\x1b[m" +
	"\x1b7\x1b[?6l\x1b[r\x1b8\x1b[?25h"

// restoredModes are the modes that Repaint sets in a viewer's terminal: cursor keys, mouse and its encodings, focus,
// paste, colour scheme.
var restoredModes = []int{1, 9, 1000, 1002, 1003, 1005, 1006, 1015, 1016, 1007, 1004, 2004, 2031}

// ANSI returns the screen as lines with SGR sequences; if n is not 0, the lines of Tail(n).
func (s *Screen) ANSI(n int) string {
	from, end := 0, s.rows
	if n > 0 {
		from, end = s.tail(n)
	}
	var text strings.Builder
	for y := from; y < end; y++ {
		line := make(uv.Line, s.cols)
		for x := range line {
			line[x] = *cmp.Or(s.cell(x, y), &uv.EmptyCell)
		}
		text.WriteString(line.Render() + "\n")
	}
	return text.String()
}

// Repaint returns bytes that make an xterm-like terminal of this size show this screen, with at most that many lines
// of scrollback, title, cursor and modes. Programs that use margins or tabs draw whole screens.
func (s *Screen) Repaint(scrollback int) []byte {
	b := []byte(reset + "\x1b[?25l\x1b[?7l\x1b[H\x1b[2J") // no auto-wrap: some terminals wrap at once after a full row
	lines := s.emulator.Scrollback()
	for i := max(0, lines.Len()-min(scrollback, s.scrollback)); i < lines.Len(); i++ {
		b = append(append(b, lines.Line(i).Render()...), "\x1b[m\r\n"...)
	}
	if s.Modes().Alt {
		b = append(b, "\x1b[?1049h\x1b[H\x1b[2J"...)
	}
	b = append(b, strings.ReplaceAll(s.emulator.Render(), "\n", "\x1b[m\r\n")...)
	x, y := s.Cursor()
	b = fmt.Appendf(b, "\x1b[m\x1b[?7h\x1b]2;%s\x1b\\\x1b[%d;%dH", s.title, y+1, x+1)
	for _, mode := range restoredModes {
		if s.modes[mode] {
			b = fmt.Appendf(b, "\x1b[?%dh", mode)
		}
	}
	b = append(b, s.bar...)
	if !s.hidden {
		b = append(b, "\x1b[?25h"...)
	}
	return b
}
