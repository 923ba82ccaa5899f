package screen

// fill is what erased cells become: blank on the pen's background.
func (s *Screen) fill() cell { return cell{hi: s.pen.hi & colorMask} }

// moveTo puts the cursor at a place, inside the screen.
func (s *Screen) moveTo(x, y int) {
	s.x = max(0, min(x, s.cols-1))
	s.y = max(0, min(y, s.rows-1))
	s.wrapNext, s.last = false, 0
}

// address is CUP: a place that counts from the top margin in origin mode.
func (s *Screen) address(x, y int) {
	if s.modes.Origin {
		y = max(s.top, min(y+s.top, s.bottom))
	}
	s.moveTo(x, y)
}

// up and down stop at the margin if they begin inside of it.
func (s *Screen) up(n int) {
	limit := 0
	if s.y >= s.top {
		limit = s.top
	}
	s.moveTo(s.x, max(s.y-n, limit))
}

func (s *Screen) down(n int) {
	limit := s.rows - 1
	if s.y <= s.bottom {
		limit = s.bottom
	}
	s.moveTo(s.x, min(s.y+n, limit))
}

// linefeed goes down one row, scrolling at the bottom margin.
func (s *Screen) linefeed() {
	if s.y == s.bottom {
		s.scroll()
	} else if s.y < s.rows-1 {
		s.y++
	}
}

// scroll moves the text between the margins up by one. On the main screen what
// leaves at the top of the screen goes to the scrollback, wherever the bottom
// margin is.
func (s *Screen) scroll() {
	s.dirty = true
	if s.top != 0 {
		s.scrollUp(s.top, 1)
		return
	}
	s.grid.push(s.bottom).clear(s.fill(), s.cols)
	if s.grid == s.main {
		s.scrolled++
	}
}

// scrollUp moves the rows from top to the bottom margin up by n; they are lost.
func (s *Screen) scrollUp(top, n int) {
	s.dirty = true
	n = min(n, s.bottom-top+1)
	s.unwrap(top)
	s.grid.rotate(top, s.bottom, n)
	for y := s.bottom - n + 1; y <= s.bottom; y++ {
		s.grid.row(y).clear(s.fill(), s.cols)
	}
	s.unwrap(s.bottom + 1)
}

// scrollDown moves the rows from top to the bottom margin down by n.
func (s *Screen) scrollDown(top, n int) {
	s.dirty = true
	n = min(n, s.bottom-top+1)
	s.unwrap(top)
	s.grid.rotate(top, s.bottom, -n)
	for y := top; y < top+n; y++ {
		s.grid.row(y).clear(s.fill(), s.cols)
	}
	s.unwrap(s.bottom + 1)
}

// unwrap says that row y does not go on from the row above any more.
func (s *Screen) unwrap(y int) {
	if y > -s.grid.hist {
		s.grid.row(y - 1).wraps = false
	}
}

// reverse is RI: up one row, scrolling at the top margin.
func (s *Screen) reverse() {
	if s.y == s.top {
		s.scrollDown(s.top, 1)
		s.wrapNext, s.last = false, 0
		return
	}
	s.moveTo(s.x, s.y-1)
}

// tab goes n tab stops to the right, or to the left for n < 0.
func (s *Screen) tab(n int) {
	x := s.x
	for ; n > 0 && x < s.cols-1; n-- {
		for x++; x < s.cols-1 && !s.tabs[x]; x++ {
		}
	}
	for ; n < 0 && x > 0; n++ {
		for x--; x > 0 && !s.tabs[x]; x-- {
		}
	}
	if x != s.x {
		s.moveTo(x, s.y)
	}
}

// eraseDisplay is ED.
func (s *Screen) eraseDisplay(what int) {
	s.dirty = true
	from, to := 0, s.rows
	switch what {
	case 0:
		s.eraseLine(0)
		from = s.y + 1
	case 1:
		s.eraseLine(1)
		to = s.y
	case 2:
	case 3:
		s.main.forget()
		return
	default:
		return
	}
	for y := from; y < to; y++ {
		s.grid.row(y).clear(s.fill(), s.cols)
	}
	if from == 0 {
		s.unwrap(0)
	}
	s.wrapNext, s.last = false, 0
}

// eraseLine is EL.
func (s *Screen) eraseLine(what int) {
	s.dirty = true
	from, to := s.x, s.cols
	switch what {
	case 0:
	case 1:
		from, to = 0, s.x+1
	case 2:
		from = 0
	default:
		return
	}
	s.grid.row(s.y).erase(from, to, s.fill(), s.cols)
	if from == 0 {
		s.unwrap(s.y)
	}
	s.wrapNext, s.last = false, 0
}

// eraseChars is ECH, insertChars ICH, deleteChars DCH.
func (s *Screen) eraseChars(n int) {
	s.dirty = true
	s.grid.row(s.y).erase(s.x, min(s.x+n, s.cols), s.fill(), s.cols)
	s.wrapNext, s.last = false, 0
}

func (s *Screen) insertChars(n int) {
	s.dirty = true
	s.grid.row(s.y).insert(s.x, n, s.fill(), s.cols)
	s.wrapNext, s.last = false, 0
}

func (s *Screen) deleteChars(n int) {
	s.dirty = true
	s.grid.row(s.y).remove(s.x, n, s.fill(), s.cols)
	s.wrapNext, s.last = false, 0
}

// insertLines is IL and deleteLines DL: nothing outside of the margins.
func (s *Screen) insertLines(n int) {
	if s.y >= s.top && s.y <= s.bottom {
		s.scrollDown(s.y, n)
		s.moveTo(0, s.y)
	}
}

func (s *Screen) deleteLines(n int) {
	if s.y >= s.top && s.y <= s.bottom {
		s.scrollUp(s.y, n)
		s.moveTo(0, s.y)
	}
}

// setMargins is DECSTBM.
func (s *Screen) setMargins(top, bottom int) {
	if bottom == 0 || bottom > s.rows {
		bottom = s.rows
	}
	top = max(top, 1)
	if top >= bottom {
		return
	}
	s.top, s.bottom = top-1, bottom-1
	s.address(0, 0)
}

// align is DECALN: the screen full of E.
func (s *Screen) align() {
	s.dirty = true
	s.top, s.bottom = 0, s.rows-1
	for y := range s.rows {
		r := s.grid.row(y)
		r.clear(cell{lo: 'E'}, s.cols)
	}
	s.unwrap(0)
	s.moveTo(0, 0)
}

// repeatLast is REP. A screenful is as good as more.
func (s *Screen) repeatLast(n int) {
	if s.repeat == 0 {
		return
	}
	w := int(s.width(s.repeat) & cellsMask)
	for range min(n, s.cols*s.rows) {
		s.place(uint32(s.repeat), max(w, 1))
	}
	s.last = 0
}

// saveCursor is DECSC, restoreCursor DECRC.
func (s *Screen) saveCursor() {
	s.saved[s.which()] = cursor{s.x, s.y, s.wrapNext, s.pen, s.charsets, s.modes.Origin}
}

func (s *Screen) restoreCursor() {
	c := s.saved[s.which()]
	s.modes.Origin = c.origin
	y := c.y
	if c.origin {
		y = max(s.top, min(y, s.bottom))
	}
	s.moveTo(c.x, y)
	if c.wrapNext && s.x == s.cols-1 {
		s.wrapNext = true
		s.grid.row(s.y).wraps = false
	}
	s.pen, s.charsets = c.pen, c.charsets
}
