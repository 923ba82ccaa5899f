package screen

import (
	"strconv"
	"unicode/utf8"
)

// Reset are the bytes that bring an xterm-like terminal back to an ordinary
// state: main screen, modes off, default style. Text and title stay, and on the
// main screen the cursor too. A viewer that leaves a screen needs them.
const Reset = "\x1b7\x1b[?1049l" + // the alternate screen; without one, this restores what ESC 7 has just saved
	"\x1b[!p" + // DECSTR
	"\x1b[?7h\x1b[4l\x1b[20l\x1b[?1l\x1b>\x1b[?5l" +
	"\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?1007l" +
	"\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?2031l" +
	"\x1b[=0u\x1b[>4;0m\x1b[0 q" +
	"\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[m" +
	"\x1b7\x1b[?6l\x1b[r\x1b8" + // both of them home the cursor
	"\x1b[?25h"

// Repaint are the bytes that make any xterm-like terminal of this size show
// this screen: Reset, at most that many lines of scrollback, both screens where
// the alternate one is shown, modes, margins, tabs, title, cursor. If Write was
// left inside a rune or a sequence, they end with its beginning, so that the
// bytes that come next go on from here.
func (s *Screen) Repaint(scrollback int) []byte {
	b := append([]byte(nil), Reset...)
	b = append(b, "\x1b[?25l\x1b[H\x1b7\x1b[2J"...)
	first := -max(0, min(scrollback, s.main.hist))
	b = s.appendRows(b, s.main, first)
	if s.grid == s.alt {
		b = s.appendKeyboard(b, 0)
		b = s.appendCursor(b, s.main, s.saved[0], 0)
		b = append(b, "\x1b[?1049h\x1b[m\x1b[?6l\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[H\x1b[2J"...)
		b = s.appendRows(b, s.alt, 0)
	}
	if saved := s.saved[s.which()]; saved != (cursor{}) {
		b = s.appendCursor(b, s.grid, saved, 0)
		b = append(b, "\x1b7\x1b[m\x1b[?6l\x1b(B\x1b)B\x1b*B\x1b+B\x0f"...)
	}
	b = s.appendTabs(b)
	if s.top != 0 || s.bottom != s.rows-1 {
		b = append(b, "\x1b["...)
		b = strconv.AppendInt(b, int64(s.top+1), 10)
		b = append(b, ';')
		b = strconv.AppendInt(b, int64(s.bottom+1), 10)
		b = append(b, 'r')
	}
	b = append(b, "\x1b]2;"...)
	b = append(b, s.title...)
	b = append(b, "\x1b\\"...)
	b = s.appendKeyboard(b, s.which())
	now := cursor{s.x, s.y, s.wrapNext, s.pen, s.charsets, s.modes.Origin}
	b = s.appendCursor(b, s.grid, now, s.top)
	b = s.modes.append(b)
	return s.appendUnfinished(b)
}

// appendRows writes rows as a stream from the top left, as a program would: the
// first of them scroll out, soft wraps wrap.
func (s *Screen) appendRows(b []byte, g *grid, first int) []byte {
	for y := first; y < g.rows; y++ {
		r := g.row(y)
		b = s.appendRow(b, r, true)
		switch {
		case y == g.rows-1:
		case !r.wraps || r.n > s.cols: // of a screen that was wider then
			b = append(b, "\r\n"...)
		default:
			for x := r.n; x < s.cols; x++ {
				b = append(b, ' ')
			}
			b = append(b, " \r"...) // wraps in the default style, whatever comes first in the next row
		}
	}
	return b
}

// appendRow writes the cells of a row, from and to the default style; without
// sync, what cannot be seen at its end is left out. With sync the column is set
// again after text whose width terminals disagree about, and between what would
// otherwise become one cluster.
func (s *Screen) appendRow(b []byte, r *row, sync bool) []byte {
	n := r.n
	for n > 0 && !sync && r.cells[n-1].empty() {
		n--
	}
	style := cell{}
	for x := 0; x < n; x++ {
		c := r.cells[x]
		if c.tail() {
			continue
		}
		if bare := c.bare(); bare != style {
			style = bare
			b = appendStyle(b, style.style())
		}
		b = s.appendChar(b, c.char())
		end := x + 1
		if c.wide() {
			end++
		}
		if sync && end < s.cols && (c.char()&clusterBit != 0 || s.alike(c, r.at(end))) {
			b = append(b, "\x1b["...)
			b = strconv.AppendInt(b, int64(end+1), 10)
			b = append(b, 'G')
		}
	}
	if style != (cell{}) {
		b = append(b, "\x1b[m"...)
	}
	return b
}

// alike says that b's text may join a, a single rune, if written right after it.
func (s *Screen) alike(a, b cell) bool {
	ch := a.char()
	if ch < utf8.RuneSelf || s.width(rune(ch))&joinsLike == 0 || b.char() < utf8.RuneSelf {
		return false
	}
	first, _ := utf8.DecodeRune(s.appendChar(nil, b.char()))
	_, one := clusterWidth(utf8.AppendRune(s.appendChar(nil, ch), first))
	return one
}

// appendStyle writes a style, whatever was before.
func appendStyle(b []byte, st Style) []byte {
	b = append(b, "\x1b[0"...)
	for bit, code := range [...]string{"1", "2", "3", "", "5", "7", "8", "9", "53"} {
		if code != "" && st.Attr&(1<<bit) != 0 {
			b = append(b, ';')
			b = append(b, code...)
		}
	}
	switch kind := st.Attr.Underlined(); kind {
	case 0:
	case 1:
		b = append(b, ";4"...)
	case 2:
		b = append(b, ";21"...)
	default:
		b = append(b, ";4:"...)
		b = strconv.AppendInt(b, int64(kind), 10)
	}
	b = appendColor(b, st.Fg, 30)
	b = appendColor(b, st.Bg, 40)
	return append(b, 'm')
}

func appendColor(b []byte, c Color, base int64) []byte {
	if i, ok := c.Palette(); ok {
		switch {
		case i < 8:
			return strconv.AppendInt(append(b, ';'), base+int64(i), 10)
		case i < 16:
			return strconv.AppendInt(append(b, ';'), base+60+int64(i-8), 10)
		}
		b = strconv.AppendInt(append(b, ';'), base+8, 10)
		return strconv.AppendInt(append(b, ";5;"...), int64(i), 10)
	}
	if r, g, bl, ok := c.RGB(); ok {
		b = strconv.AppendInt(append(b, ';'), base+8, 10)
		b = strconv.AppendInt(append(b, ";2;"...), int64(r), 10)
		b = strconv.AppendInt(append(b, ';'), int64(g), 10)
		return strconv.AppendInt(append(b, ';'), int64(bl), 10)
	}
	return b
}

// appendCursor puts the cursor there, with its pen and charsets. The state that
// the next character wraps comes back by writing the last one again.
func (s *Screen) appendCursor(b []byte, g *grid, c cursor, top int) []byte {
	y := c.y
	if c.origin {
		b = append(b, "\x1b[?6h"...)
		y -= top
	}
	x, r := c.x, g.row(c.y)
	wrapNext := c.wrapNext && !r.wraps // the row went on since the cursor was saved
	last := r.at(x)
	if wrapNext && last.tail() {
		x--
		last = r.at(x)
	}
	b = append(b, "\x1b["...)
	b = strconv.AppendInt(b, int64(y+1), 10)
	b = append(b, ';')
	b = strconv.AppendInt(b, int64(x+1), 10)
	b = append(b, 'H')
	if wrapNext {
		b = appendStyle(b, last.style())
		b = s.appendChar(b, last.char())
	}
	b = appendStyle(b, c.pen.style())
	for i, set := range c.charsets.g {
		if set != asciiSet {
			b = append(b, 0x1b, "()*+"[i], " 0A"[set])
		}
	}
	switch c.charsets.gl {
	case 1:
		b = append(b, 0x0e)
	case 2:
		b = append(b, "\x1bn"...)
	case 3:
		b = append(b, "\x1bo"...)
	}
	switch c.charsets.single {
	case 2:
		b = append(b, "\x1bN"...)
	case 3:
		b = append(b, "\x1bO"...)
	}
	return b
}

// appendTabs sets the tab stops where they are not the usual ones.
func (s *Screen) appendTabs(b []byte) []byte {
	usual := true
	for x, stop := range s.tabs {
		usual = usual && stop == (x%8 == 0 && x > 0)
	}
	if usual {
		return b
	}
	b = append(b, "\x1b[3g"...)
	for x, stop := range s.tabs {
		if stop {
			b = append(b, "\x1b["...)
			b = strconv.AppendInt(b, int64(x+1), 10)
			b = append(b, "G\x1bH"...)
		}
	}
	return b
}

// appendKeyboard pushes the keyboard flags of one of the screens.
func (s *Screen) appendKeyboard(b []byte, which int) []byte {
	flags := s.keyboards[which].flags
	if flags == 0 {
		return b
	}
	b = append(b, "\x1b[="...)
	b = strconv.AppendInt(b, int64(flags), 10)
	return append(b, 'u')
}

// append switches on what Reset left off. Modes that move the cursor are not
// among it.
func (m *Modes) append(b []byte) []byte {
	private := func(on bool, n uint16, final byte) {
		if on {
			b = append(b, "\x1b[?"...)
			b = strconv.AppendInt(b, int64(n), 10)
			b = append(b, final)
		}
	}
	private(m.AppCursor, 1, 'h')
	private(m.Reversed, 5, 'h')
	private(m.AutoWrapOff, 7, 'l')
	private(m.Mouse != 0, m.Mouse, 'h')
	private(m.MouseEncoding != 0, m.MouseEncoding, 'h')
	private(m.Focus, 1004, 'h')
	private(m.AltScroll, 1007, 'h')
	private(m.Paste, 2004, 'h')
	private(m.ColorScheme, 2031, 'h')
	private(m.Sync, 2026, 'h')
	if m.AppKeypad {
		b = append(b, "\x1b="...)
	}
	if m.Insert {
		b = append(b, "\x1b[4h"...)
	}
	if m.NewLine {
		b = append(b, "\x1b[20h"...)
	}
	if m.OtherKeys != 0 {
		b = append(b, "\x1b[>4;"...)
		b = append(b, '0'+m.OtherKeys, 'm')
	}
	if m.CursorStyle != 0 {
		b = append(b, "\x1b["...)
		b = append(b, '0'+m.CursorStyle, ' ', 'q')
	}
	private(!m.CursorHidden, 25, 'h')
	return b
}

// appendUnfinished writes what of a rune or a sequence has come so far.
func (s *Screen) appendUnfinished(b []byte) []byte {
	more := byte('0') // one byte over the limit where the sequence is void already
	switch s.state {
	case inGround:
		return append(b, s.rune[:s.runeN]...)
	case inEscape:
		b = append(b, 0x1b)
		more = ' '
	case inCSI:
		b = append(b, "\x1b["...)
	default:
		b = append(b, 0x1b, s.kind)
	}
	b = append(b, s.seq...)
	if s.long {
		b = append(b, more)
	}
	if s.state == inStringEsc {
		b = append(b, 0x1b)
	}
	return b
}
