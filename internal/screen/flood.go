package screen

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// line is one that a flood was found to consist of.
type line struct {
	start int
	moves int  // by which the lines before it move the cursor down
	sure  bool // it begins with a character that REP repeats and nothing joins
}

// spare is how far back a line that is sure is looked for.
const spare = 64

// skim takes what a flood begins with and nobody will ever see: lines that the
// lines behind them push out of the scrollback. It returns the rest, to be drawn.
// The result is the same, because a line is only passed over when it is plain
// text with renditions, of which only the last counts, and when it is known how
// many rows it takes. Drawing them takes ten times as long.
func (s *Screen) skim(p []byte) []byte {
	keep := s.rows + s.grid.limit
	if len(p) < 4*keep || bytes.Count(p, newline) < 2*keep {
		return p
	}
	if s.x != 0 || s.wrapNext || s.runeN > 0 {
		head := bytes.IndexByte(p, '\n') + 1
		rest := s.ground(p[:head])
		p = p[head-len(rest):]
		if len(rest) > 0 || s.state != inGround || s.x != 0 {
			return p
		}
	}
	if s.top != 0 || s.bottom != s.rows-1 || s.modes.Insert || !s.plain() {
		return p
	}
	if s.skimmed == nil || len(s.skimmed) != keep+spare {
		s.skimmed = make([]line, keep+spare)
	}
	ring := s.skimmed
	at, moves, count := 0, 0, 0
	for {
		n, rows, sure := s.simple(p[at:])
		if n == 0 {
			break
		}
		ring[count%len(ring)] = line{at, moves, sure}
		at, moves, count = at+n, moves+rows, count+1
	}
	for i := count - keep; i > 0 && i > count-len(ring); i-- {
		if l := ring[i%len(ring)]; l.sure {
			s.passOver(p[:l.start], l.moves)
			return p[l.start:]
		}
	}
	return p
}

var newline = []byte{'\n'}

// passOver does what is left of lines when they have gone.
func (s *Screen) passOver(p []byte, moves int) {
	for {
		i := bytes.IndexByte(p, 0x1b)
		if i < 0 {
			break
		}
		p = p[i+2:]
		p = p[s.wholeCSI(p):]
	}
	down := min(moves, s.bottom-s.y)
	s.y += down
	if s.grid == s.main {
		s.scrolled += uint64(moves - down)
	}
	s.x, s.wrapNext, s.last = 0, false, 0
	s.dirty = true
}

// simple is how long the line is that p begins with, and by how many rows it
// moves the cursor down; 0 if that is not known, or more can come of the line
// than text that scrolls away.
func (s *Screen) simple(p []byte) (n, rows int, sure bool) {
	end := bytes.IndexByte(p, '\n') - 1
	if end < 0 || p[end] != '\r' {
		return 0, 0, false
	}
	p = p[:end]
	cells, ascii := 0, true // at most so many
	for i := 0; i < len(p); {
		if i+8 <= len(p) && asciiWord(binary.LittleEndian.Uint64(p[i:])) {
			sure = sure || cells == 0
			cells += 8
			i += 8
			continue
		}
		switch b := p[i]; {
		case b >= 0x20 && b < 0x7f:
			sure = sure || cells == 0
			cells++
			i++
		case b == 0x1b:
			ascii = false
			k := rendition(p[i:])
			if k == 0 {
				return 0, 0, false
			}
			i += k
		case b >= utf8.RuneSelf:
			ascii = false
			r, size := utf8.DecodeRune(p[i:])
			if r == utf8.RuneError && size == 1 {
				return 0, 0, false
			}
			cells += 2
			i += size
		default:
			return 0, 0, false
		}
	}
	rows = 1
	if cells > s.cols {
		if !ascii || s.modes.AutoWrapOff {
			return 0, 0, false
		}
		rows += (cells - 1) / s.cols
	}
	return end + 2, rows, sure
}

// asciiWord says that eight bytes are all printable ASCII.
func asciiWord(w uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	// Where no byte has its high bit, nothing is carried from one to the next by
	// adding one, and the lowest borrow is a true one.
	return (w|(w+ones)|(w-' '*ones))&highs == 0
}

// rendition is how long the SGR sequence is that p begins with; 0: there is
// none.
func rendition(p []byte) int {
	if len(p) < 3 || p[1] != '[' {
		return 0
	}
	for i := 2; i < len(p) && i < maxSequence; i++ {
		switch b := p[i]; {
		case b == 'm':
			return i + 1
		case (b < '0' || b > '9') && b != ';' && b != ':':
			return 0
		}
	}
	return 0
}
