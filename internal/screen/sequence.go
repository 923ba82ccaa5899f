package screen

// maxParams is how many parameters of a sequence count; xterm takes 30.
const maxParams = 32

// params are the parameters of a CSI sequence. Empty ones are 0.
type params struct {
	n      int
	values [maxParams]int32
	colon  uint32 // bit i: parameter i was joined to the one before by a colon
	prefix byte   // one of <=>?, or 0
	middle byte   // the intermediate, or 0
}

// at is parameter i, or what stands for zero and none.
func (p *params) at(i, none int) int {
	if i >= p.n || p.values[i] == 0 {
		return none
	}
	return int(p.values[i])
}

// parse reads a sequence between its ESC [ and its final byte; false: it is malformed.
func (p *params) parse(b []byte) bool {
	p.n, p.colon, p.prefix, p.middle = 0, 0, 0, 0
	if len(b) == 0 {
		return true
	}
	if b[0] >= '<' {
		p.prefix = b[0]
		b = b[1:]
	}
	value, digits := int32(0), false
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			if value = value*10 + int32(c-'0'); value > 0xffff {
				value = 0xffff
			}
			digits = true
		case c == ';' || c == ':':
			p.add(value)
			if c == ':' && p.n < maxParams {
				p.colon |= 1 << p.n
			}
			value, digits = 0, true
		case c < 0x30:
			if i != len(b)-1 {
				return false
			}
			p.middle = c
		default:
			return false
		}
	}
	if digits {
		p.add(value)
	}
	return true
}

func (p *params) add(v int32) {
	if p.n < maxParams {
		p.values[p.n] = v
		p.n++
	}
}

// esc does an escape sequence that is not the beginning of a longer one.
func (s *Screen) esc(middle string, final byte) {
	switch middle {
	case "":
	case "(", ")", "*", "+":
		s.designate(middle[0], final)
		return
	case "#":
		if final == '8' {
			s.align()
		}
		return
	default:
		return
	}
	switch final {
	case '7':
		s.saveCursor()
	case '8':
		s.restoreCursor()
	case 'D':
		s.linefeed()
		s.wrapNext, s.last = false, 0
	case 'E':
		s.linefeed()
		s.moveTo(0, s.y)
	case 'H':
		s.tabs[s.x] = true
	case 'M':
		s.reverse()
	case 'N':
		s.single = 2
	case 'O':
		s.single = 3
	case 'Z':
		s.reply("\x1b[?62;22c")
	case 'c':
		s.reset()
	case 'n':
		s.gl = 2
	case 'o':
		s.gl = 3
	case '=':
		s.modes.AppKeypad = true
	case '>':
		s.modes.AppKeypad = false
	}
}

// sequence does a CSI sequence.
func (s *Screen) sequence(b []byte, final byte) {
	var p params
	if !p.parse(b) {
		return
	}
	switch {
	case p.prefix == 0 && p.middle == 0:
		s.plainSequence(&p, final)
	case p.middle == '$' && final == 'p':
		s.answerMode(&p)
	case p.prefix == '?' && p.middle == 0:
		s.privateSequence(&p, final)
	case p.prefix == 0 && p.middle == ' ' && final == 'q':
		s.modes.CursorStyle = uint8(min(p.at(0, 0), 6))
	case p.prefix == 0 && p.middle == '!' && final == 'p':
		s.softReset()
	case p.prefix == '>' && p.middle == 0:
		switch final {
		case 'c':
			if p.at(0, 0) == 0 {
				s.reply("\x1b[>1;10;0c")
			}
		case 'm':
			if p.at(0, 4) == 4 {
				s.modes.OtherKeys = uint8(min(p.at(1, 0), 3))
			}
		case 'n':
			if p.at(0, 4) == 4 {
				s.modes.OtherKeys = 0
			}
		case 'u':
			s.pushKeyboard(uint8(p.at(0, 0)))
		}
	case p.prefix == '<' && p.middle == 0 && final == 'u':
		s.popKeyboard(p.at(0, 1))
	case p.prefix == '=' && p.middle == 0 && final == 'u':
		s.setKeyboard(uint8(p.at(0, 0)), p.at(1, 1))
	}
}

func (s *Screen) plainSequence(p *params, final byte) {
	n := p.at(0, 1)
	switch final {
	case 'm':
		s.rendition(p)
	case 'H', 'f':
		s.address(p.at(1, 1)-1, n-1)
	case 'A':
		s.up(n)
	case 'B', 'e':
		s.down(n)
	case 'C', 'a':
		s.moveTo(s.x+n, s.y)
	case 'D':
		s.moveTo(s.x-n, s.y)
	case 'E':
		s.down(n)
		s.moveTo(0, s.y)
	case 'F':
		s.up(n)
		s.moveTo(0, s.y)
	case 'G', '`':
		s.moveTo(n-1, s.y)
	case 'd':
		s.address(s.x, n-1)
	case 'I':
		s.tab(n)
	case 'Z':
		s.tab(-n)
	case 'J':
		s.eraseDisplay(p.at(0, 0))
	case 'K':
		s.eraseLine(p.at(0, 0))
	case 'X':
		s.eraseChars(n)
	case '@':
		s.insertChars(n)
	case 'P':
		s.deleteChars(n)
	case 'L':
		s.insertLines(n)
	case 'M':
		s.deleteLines(n)
	case 'S':
		for range min(n, s.bottom-s.top+1) {
			s.scroll()
		}
		s.wrapNext, s.last = false, 0
	case 'T', '^':
		if p.n <= 1 { // with more, T is xterm's mouse highlighting
			s.scrollDown(s.top, n)
			s.wrapNext, s.last = false, 0
		}
	case 'b':
		s.repeatLast(n)
	case 'c':
		if p.at(0, 0) == 0 {
			s.reply("\x1b[?62;22c")
		}
	case 'g':
		s.clearTabs(p.at(0, 0))
	case 'h', 'l':
		for i := range p.n {
			s.setMode(int(p.values[i]), final == 'h')
		}
	case 'n':
		s.answerStatus(p.at(0, 0), "")
	case 'r':
		s.setMargins(p.at(0, 0), p.at(1, 0))
	case 's':
		s.saveCursor()
	case 'u':
		s.restoreCursor()
	case 't':
		s.window(p)
	}
}

func (s *Screen) privateSequence(p *params, final byte) {
	switch final {
	case 'h', 'l':
		for i := range p.n {
			s.setPrivateMode(int(p.values[i]), final == 'h')
		}
	case 'n':
		s.answerStatus(p.at(0, 0), "?")
	case 'J': // the selective ones: nothing is ever protected
		s.eraseDisplay(p.at(0, 0))
	case 'K':
		s.eraseLine(p.at(0, 0))
	}
}

func (s *Screen) clearTabs(what int) {
	switch what {
	case 0:
		s.tabs[s.x] = false
	case 3:
		clear(s.tabs)
	}
}

// softReset is DECSTR.
func (s *Screen) softReset() {
	m := &s.modes
	m.CursorHidden, m.Insert, m.Origin, m.AutoWrapOff, m.AppCursor, m.AppKeypad = false, false, false, false, false, false
	s.top, s.bottom = 0, s.rows-1
	s.pen, s.charsets = cell{}, charsets{}
	s.saved[s.which()] = cursor{}
}

// rendition is SGR.
func (s *Screen) rendition(p *params) {
	st := s.pen.style()
	if p.n == 0 {
		st = Style{}
	}
	for i := 0; i < p.n; {
		j := i + 1
		for j < p.n && p.colon&(1<<j) != 0 {
			j++
		}
		v := p.values[i]
		switch {
		case v == 38 || v == 48 || v == 58:
			c, next, ok := p.color(i, j)
			if ok && v == 38 {
				st.Fg = c
			} else if ok && v == 48 {
				st.Bg = c
			}
			j = next
		case v == 4 && j > i+1:
			st.Attr = st.Attr.underlined(int(p.values[i+1]))
		default:
			st.apply(v)
		}
		i = j
	}
	s.pen.setStyle(st)
}

// apply does one number of an SGR sequence that has no parts.
func (st *Style) apply(v int32) {
	switch {
	case v == 0:
		*st = Style{}
	case v >= 30 && v <= 37:
		st.Fg = Palette(uint8(v - 30))
	case v == 39:
		st.Fg = 0
	case v >= 40 && v <= 47:
		st.Bg = Palette(uint8(v - 40))
	case v == 49:
		st.Bg = 0
	case v >= 90 && v <= 97:
		st.Fg = Palette(uint8(v - 90 + 8))
	case v >= 100 && v <= 107:
		st.Bg = Palette(uint8(v - 100 + 8))
	case v == 1:
		st.Attr |= Bold
	case v == 2:
		st.Attr |= Dim
	case v == 3:
		st.Attr |= Italic
	case v == 4:
		st.Attr = st.Attr.underlined(1)
	case v == 5 || v == 6:
		st.Attr |= Blink
	case v == 7:
		st.Attr |= Inverse
	case v == 8:
		st.Attr |= Hidden
	case v == 9:
		st.Attr |= Strike
	case v == 21:
		st.Attr = st.Attr.underlined(2)
	case v == 22:
		st.Attr &^= Bold | Dim
	case v == 23:
		st.Attr &^= Italic
	case v == 24:
		st.Attr = st.Attr.underlined(0)
	case v == 25:
		st.Attr &^= Blink
	case v == 27:
		st.Attr &^= Inverse
	case v == 28:
		st.Attr &^= Hidden
	case v == 29:
		st.Attr &^= Strike
	case v == 53:
		st.Attr |= Overline
	case v == 55:
		st.Attr &^= Overline
	}
}

// color reads the colour after parameter i, whose parts by colons end at j. The
// form with semicolons takes as many parameters as it needs.
func (p *params) color(i, j int) (c Color, next int, ok bool) {
	part := func(i int) uint8 { return uint8(min(p.values[i], 255)) }
	if j > i+1 {
		switch kind := p.values[i+1]; {
		case kind == 5 && j > i+2:
			return Palette(part(i + 2)), j, true
		case kind == 2 && j > i+5: // 38:2:colour space:r:g:b
			return RGB(part(i+3), part(i+4), part(i+5)), j, true
		case kind == 2 && j == i+5: // 38:2:r:g:b, an old mistake that is in use
			return RGB(part(i+2), part(i+3), part(i+4)), j, true
		}
		return 0, j, false
	}
	switch {
	case i+2 < p.n && p.values[i+1] == 5:
		return Palette(part(i + 2)), i + 3, true
	case i+4 < p.n && p.values[i+1] == 2:
		return RGB(part(i+2), part(i+3), part(i+4)), i + 5, true
	}
	return 0, p.n, false
}
