package screen

import "unicode/utf8"

// ascii writes printable ASCII at the cursor: the path that speed is about.
func (s *Screen) ascii(run []byte) {
	if s.modes.Insert || !s.plain() {
		for _, b := range run {
			s.place(s.translate(b), 1)
			s.last = 0
		}
		return
	}
	s.dirty = true
	s.last, s.repeat = 0, rune(run[len(run)-1])
	lo, hi := s.pen.lo, s.pen.hi
	for {
		if s.wrapNext && !s.modes.AutoWrapOff {
			s.wrap()
		}
		r := s.grid.row(s.y)
		x := s.x
		end := min(x+len(run), s.cols)
		r.split(x, end)
		if end > r.n {
			if end > len(r.cells) {
				r.reach(end, s.cols)
			}
			if x > r.n {
				clear(r.cells[r.n:x])
			}
			r.n = end
		}
		dst := r.cells[x:end]
		for i := range dst {
			dst[i] = cell{lo | uint64(run[i]), hi}
		}
		if end < s.cols {
			s.x = end
			return
		}
		s.x, s.wrapNext = s.cols-1, true
		r.wraps = false
		run = run[len(dst):]
		if len(run) == 0 {
			return
		}
		if s.modes.AutoWrapOff {
			run = run[len(run)-1:] // all of them go to the last column, one over the other
		}
	}
}

// put writes a rune that is not ASCII: into the cell before the cursor if it
// belongs to that cluster, else into a cell of its own.
func (s *Screen) put(r rune) {
	w := s.width(r)
	if w&joins != 0 ||
		w&joinsZWJ != 0 && s.last == zwj ||
		w&joinsLike != 0 && s.last != 0 && s.width(s.last)&(joins|joinsLike) != 0 {
		if s.join(r) {
			s.last = r
			return
		}
	}
	switch {
	case w&cellsMask == 0:
		return
	case w&joins != 0: // a mark that takes room and has nothing to stand on: it gets a space as wide
		s.buf = utf8.AppendRune(append(s.buf[:0], [...]string{1: " ", 2: "\u3000"}[w&cellsMask]...), r)
		s.place(s.intern(s.buf), int(w&cellsMask))
	default:
		s.place(uint32(r), int(w&cellsMask))
	}
	s.last = r
}

// place writes a character of one or two cells at the cursor.
func (s *Screen) place(ch uint32, width int) {
	if width > s.cols {
		ch, width = utf8.RuneError, 1
	}
	s.dirty = true
	if ch&clusterBit == 0 {
		s.repeat = rune(ch)
	}
	if s.wrapNext && !s.modes.AutoWrapOff {
		s.wrap()
	}
	if s.x+width > s.cols {
		if s.modes.AutoWrapOff {
			return
		}
		s.grid.row(s.y).erase(s.x, s.cols, s.fill(), s.cols)
		s.wrap()
	}
	r := s.grid.row(s.y)
	if s.modes.Insert {
		r.insert(s.x, width, cell{}, s.cols)
	}
	end := s.x + width
	r.split(s.x, end)
	r.extend(end, s.cols)
	c := s.pen
	c.lo |= uint64(ch)
	if width == 2 {
		r.wide = true
		c.hi |= wideBit
		r.cells[s.x+1] = cell{s.pen.lo, s.pen.hi | tailBit}
	}
	r.cells[s.x] = c
	s.advance(r, end)
}

// advance moves the cursor behind what was written.
func (s *Screen) advance(r *row, end int) {
	s.x, s.wrapNext = end, false
	if end >= s.cols {
		s.x, s.wrapNext = s.cols-1, true
		r.wraps = false
	}
}

// wrap goes to the next line because the text does.
func (s *Screen) wrap() {
	s.grid.row(s.y).wraps = true
	s.linefeed()
	s.x, s.wrapNext = 0, false
}

// join adds a rune to the cluster before the cursor and says whether it belongs
// there. A variation selector may make the cluster two cells wide.
func (s *Screen) join(r rune) bool {
	x := s.x - 1
	if s.wrapNext {
		x = s.x
	}
	line := s.grid.row(s.y)
	if x < 0 {
		return false
	}
	line.extend(x+1, s.cols)
	if line.cells[x].tail() {
		x--
	}
	c := line.cells[x]
	s.buf = utf8.AppendRune(s.appendChar(s.buf[:0], c.char()), r)
	width, one := clusterWidth(s.buf)
	if !one {
		return false
	}
	widens := width == 2 && !c.wide()
	if len(s.buf) > maxCluster || widens && x == s.cols-1 && (s.modes.AutoWrapOff || x == 0) {
		return true // there is no room for it
	}
	s.dirty = true
	c.lo = c.lo&^charMask | uint64(s.intern(s.buf))
	line.cells[x] = c
	if widens {
		s.widen(line, x)
	}
	return true
}

// widen makes the character at x two cells wide; the cursor is behind it.
func (s *Screen) widen(r *row, x int) {
	if x == s.cols-1 {
		ch := r.cells[x].char()
		r.erase(x, s.cols, s.fill(), s.cols)
		s.x, s.wrapNext = x, true
		s.place(ch, 2)
		return
	}
	if s.modes.Insert {
		r.insert(x+1, 1, cell{}, s.cols)
	}
	r.split(x+1, x+2)
	r.extend(x+2, s.cols)
	r.wide = true
	r.cells[x].hi |= wideBit
	r.cells[x+1] = cell{r.cells[x].lo &^ charMask, r.cells[x].hi&^wideBit | tailBit}
	s.advance(r, x+2)
}
