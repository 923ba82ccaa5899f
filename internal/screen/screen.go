// Package screen is a terminal without a window: bytes in; cells, title, modes,
// notes and answers out. It does no I/O and starts nothing.
//
// It is an xterm with 256 and true colours, as far as programs notice: UTF-8
// only (so the byte 0x9C never ends a string), no 8-bit controls, no left and
// right margins, no double-size lines, no reflow at a resize. What it does not
// know it swallows.
//
// What may be relied on:
//
//   - The result does not depend on how the bytes were split over calls of
//     Write: runes, sequences and strings may be torn anywhere.
//   - Write never blocks, never fails, never panics; nothing that is fed makes
//     memory grow without bound: scrollback, strings, notes, answers, clusters
//     and their table all have their limit.
//   - Cells are whole: a wide character is two cells or none; a cell's text is
//     one grapheme cluster, as wide as displaywidth says (text with combining
//     marks, VS16, ZWJ emoji, flags).
//   - In the steady state nothing is allocated.
//
// A Screen has one owner; it is not for concurrent use.
package screen

// maxSide bounds both sides of a screen, so that no size costs all memory.
const maxSide = 4096

// Screen is the terminal. Make one with New.
type Screen struct {
	cols, rows int
	main, alt  *grid
	grid       *grid // the one of the two that is shown

	x, y     int
	wrapNext bool // the last column was written: the next character wraps
	pen      cell // style of what is written next, without character
	charsets
	top, bottom int // scroll margins, both inside
	modes       Modes
	saved       [2]cursor // of the main and of the alternate screen
	keyboards   [2]keyboard
	tabs        []bool

	last   rune // what was written just before, 0 after any control: what a cluster may go on from
	repeat rune // what REP repeats

	parser
	skimmed []line // the last lines of a flood
	clusters
	widths

	title   string
	titles  []string // the stack of CSI 22 t
	notes   []Note
	chunks  chunks
	replies []byte

	version  uint64
	dirty    bool
	seen     seen // what version counts
	scrolled uint64

	texts map[rune]string // text of single runes for Row
	view  []Cell          // what Row hands out
	buf   []byte
}

// cursor is what DECSC saves.
type cursor struct {
	x, y     int
	wrapNext bool
	pen      cell
	charsets charsets
	origin   bool
}

// seen is what can be seen beside the cells.
type seen struct {
	x, y  int
	modes Modes
	title string
}

// New is a blank screen that keeps that many lines of scrollback. Sizes below
// one count as one, above 4096 as 4096.
func New(cols, rows, scrollback int) *Screen {
	cols, rows = clampSide(cols), clampSide(rows)
	s := &Screen{cols: cols, rows: rows}
	s.main, s.alt = newGrid(rows, max(scrollback, 0)), newGrid(rows, 0)
	s.reset()
	s.seen = s.look()
	s.dirty = false
	return s
}

func clampSide(n int) int { return max(1, min(n, maxSide)) }

// reset is RIS. The title stays: it belongs to the window.
func (s *Screen) reset() {
	s.grid = s.main
	s.modes = Modes{}
	s.x, s.y, s.wrapNext = 0, 0, false
	s.pen = cell{}
	s.charsets = charsets{}
	s.top, s.bottom = 0, s.rows-1
	s.saved = [2]cursor{}
	s.keyboards = [2]keyboard{}
	s.tabs = defaultTabs(nil, s.cols)
	s.last, s.repeat = 0, 0
	for _, g := range []*grid{s.main, s.alt} {
		for y := range s.rows {
			g.row(y).clear(cell{}, s.cols)
		}
	}
	s.main.forget()
	s.dirty = true
}

// defaultTabs makes tabs cols long; what is new has a stop in every eighth column.
func defaultTabs(tabs []bool, cols int) []bool {
	for x := len(tabs); x < cols; x++ {
		tabs = append(tabs, x%8 == 0 && x > 0)
	}
	return tabs[:cols]
}

// Resize makes the screen cols × rows, within the limits of New. The text is
// not reflowed: rows are cut at the new width. On the main screen, rows that no
// longer fit leave at the top, into the scrollback, and come back when it grows.
// The margins go, as in xterm.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = clampSide(cols), clampSide(rows)
	if cols == s.cols && rows == s.rows {
		return
	}
	fits := func(c *cursor, by int) {
		c.wrapNext = c.wrapNext && cols == s.cols
		c.x = min(c.x, cols-1)
		c.y = max(0, min(c.y+by, rows-1))
	}
	now := cursor{x: s.x, y: s.y, wrapNext: s.wrapNext}
	at := [2]*cursor{&s.saved[0], &s.saved[1]}
	at[s.which()] = &now
	for i, g := range []*grid{s.main, s.alt} {
		before := at[i].y
		after, pushed := g.resize(cols, rows, before)
		if i == 0 {
			s.scrolled += uint64(pushed)
		}
		fits(&s.saved[i], after-before)
		if i == s.which() {
			fits(&now, after-before)
		}
	}
	s.x, s.y, s.wrapNext = now.x, now.y, now.wrapNext
	s.tabs = defaultTabs(s.tabs[:min(cols, len(s.tabs))], cols)
	s.cols, s.rows = cols, rows
	s.top, s.bottom = 0, rows-1
	s.last = 0
	s.dirty = true
	s.settle()
}

// which is the index of the shown screen: 0 main, 1 alternate.
func (s *Screen) which() int {
	if s.grid == s.alt {
		return 1
	}
	return 0
}

func (s *Screen) look() seen { return seen{s.x, s.y, s.Modes(), s.title} }

// settle moves the version on if something visible changed.
func (s *Screen) settle() {
	if now := s.look(); s.dirty || now != s.seen {
		s.version++
		s.seen, s.dirty = now, false
	}
}

// Size is the size in cells.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// Title is the window's title, without control characters.
func (s *Screen) Title() string { return s.title }

// Cursor is the cursor's place, from 0. After the last column was written it
// stands on that column until the next character wraps.
func (s *Screen) Cursor() (x, y int) { return s.x, s.y }

// Version grows with every visible change: cells, cursor, title, modes. Text
// that is written again as it was counts as a change.
func (s *Screen) Version() uint64 { return s.version }

// Scrolled is how many lines ever left the main screen at the top. It never
// shrinks: not when the scrollback is cleared, nor when a growing screen takes
// lines back.
func (s *Screen) Scrolled() uint64 { return s.scrolled }
