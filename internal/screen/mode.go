package screen

import "strconv"

// Modes is what programs switch.
type Modes struct {
	Paste        bool // 2004: pasted text is bracketed
	Focus        bool // 1004: focus is reported
	Alt          bool // 47, 1047, 1049: the alternate screen is shown
	CursorHidden bool // 25 off
	AppCursor    bool // 1: arrow keys send ESC O
	AppKeypad    bool // ESC =
	Sync         bool // 2026: a frame is being drawn
	AutoWrapOff  bool // 7 off
	Origin       bool // 6: rows count from the top margin
	Insert       bool // 4
	NewLine      bool // 20: LF is CR LF
	Reversed     bool // 5: the whole screen is inverse
	AltScroll    bool // 1007: the wheel sends arrows on the alternate screen
	ColorScheme  bool // 2031: a change of light and dark is reported

	Mouse         uint16 // 9, 1000, 1002 or 1003; 0 off
	MouseEncoding uint16 // 1005, 1006, 1015 or 1016; 0 the old one
	OtherKeys     uint8  // xterm's modifyOtherKeys, 0–3
	Keyboard      uint8  // the flags of kitty's keyboard protocol
	CursorStyle   uint8  // DECSCUSR, 0–6
}

// Modes are the modes now.
func (s *Screen) Modes() Modes {
	m := s.modes
	m.Alt = s.grid == s.alt
	m.Keyboard = s.keyboards[s.which()].flags
	return m
}

// setMode is SM and RM.
func (s *Screen) setMode(n int, on bool) {
	switch n {
	case 4:
		s.modes.Insert = on
	case 20:
		s.modes.NewLine = on
	}
}

// flag is the place of a private mode that only has to be remembered.
func (m *Modes) flag(n int) *bool {
	switch n {
	case 1:
		return &m.AppCursor
	case 5:
		return &m.Reversed
	case 66:
		return &m.AppKeypad
	case 1004:
		return &m.Focus
	case 1007:
		return &m.AltScroll
	case 2004:
		return &m.Paste
	case 2026:
		return &m.Sync
	case 2031:
		return &m.ColorScheme
	}
	return nil
}

// setPrivateMode is DECSET and DECRST.
func (s *Screen) setPrivateMode(n int, on bool) {
	if f := s.modes.flag(n); f != nil {
		*f = on
		return
	}
	switch n {
	case 6:
		s.modes.Origin = on
		s.address(0, 0)
	case 7:
		s.modes.AutoWrapOff = !on
	case 25:
		s.modes.CursorHidden = !on
	case 9, 1000, 1002, 1003:
		s.modes.Mouse = 0
		if on {
			s.modes.Mouse = uint16(n)
		}
	case 1005, 1006, 1015, 1016:
		if on {
			s.modes.MouseEncoding = uint16(n)
		} else if s.modes.MouseEncoding == uint16(n) {
			s.modes.MouseEncoding = 0
		}
	case 47:
		s.showAlt(on)
	case 1047:
		if !on && s.grid == s.alt {
			s.clearAlt()
		}
		s.showAlt(on)
	case 1048:
		if on {
			s.saveCursor()
		} else {
			s.restoreCursor()
		}
	case 1049:
		if on && s.grid == s.main {
			s.saveCursor()
			s.showAlt(true)
		}
		if on {
			s.clearAlt()
		} else {
			s.showAlt(false)
			s.restoreCursor()
		}
	}
}

// showAlt switches to the alternate screen or back; the cursor stays.
func (s *Screen) showAlt(on bool) {
	g := s.main
	if on {
		g = s.alt
	}
	if g != s.grid {
		s.grid = g
		s.dirty = true
		s.last = 0
	}
}

func (s *Screen) clearAlt() {
	s.dirty = true
	for y := range s.rows {
		s.alt.row(y).clear(s.fill(), s.cols)
	}
}

// privateMode is what DECRQM answers: 0 not known, 1 set, 2 reset, 3 always set.
func (s *Screen) privateMode(n int) int {
	on := false
	m := s.Modes()
	switch n {
	case 2027: // grapheme clusters are all that there is
		return 3
	case 6:
		on = m.Origin
	case 7:
		on = !m.AutoWrapOff
	case 25:
		on = !m.CursorHidden
	case 9, 1000, 1002, 1003:
		on = m.Mouse == uint16(n)
	case 1005, 1006, 1015, 1016:
		on = m.MouseEncoding == uint16(n)
	case 47, 1047, 1049:
		on = m.Alt
	default:
		f := m.flag(n)
		if f == nil {
			return 0
		}
		on = *f
	}
	if on {
		return 1
	}
	return 2
}

// answerMode is DECRQM.
func (s *Screen) answerMode(p *params) {
	n, prefix, state := p.at(0, 0), "", 0
	if p.prefix == '?' {
		prefix, state = "?", s.privateMode(n)
	} else if p.prefix != 0 {
		return
	} else if n == 4 || n == 20 {
		state = 2
		if n == 4 && s.modes.Insert || n == 20 && s.modes.NewLine {
			state = 1
		}
	}
	s.reply("\x1b[" + prefix + strconv.Itoa(n) + ";" + strconv.Itoa(state) + "$y")
}

// keyboard is kitty's keyboard protocol as far as a screen has to carry it: the
// flags of each of the two screens, with their stack.
type keyboard struct {
	flags uint8
	stack [16]uint8
	n     int
}

func (s *Screen) pushKeyboard(flags uint8) {
	k := &s.keyboards[s.which()]
	if k.n == len(k.stack) {
		copy(k.stack[:], k.stack[1:])
		k.n--
	}
	k.stack[k.n] = k.flags
	k.n++
	k.flags = flags & 31
}

func (s *Screen) popKeyboard(n int) {
	k := &s.keyboards[s.which()]
	for ; n > 0; n-- {
		if k.n == 0 {
			k.flags = 0
			return
		}
		k.n--
		k.flags = k.stack[k.n]
	}
}

func (s *Screen) setKeyboard(flags uint8, how int) {
	k := &s.keyboards[s.which()]
	switch how {
	case 1:
		k.flags = flags & 31
	case 2:
		k.flags |= flags & 31
	case 3:
		k.flags &^= flags
	}
}
