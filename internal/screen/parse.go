package screen

import (
	"bytes"
	"unicode/utf8"
)

const (
	maxSequence = 256  // bytes of a CSI sequence; a longer one is swallowed
	maxString   = 4096 // bytes of an OSC string; a longer one is swallowed
)

type parseState uint8

const (
	inGround parseState = iota
	inEscape            // after ESC and perhaps intermediates
	inCSI
	inString    // OSC, DCS, APC, PM, SOS
	inStringEsc // after an ESC in a string
)

// parser holds what Write has of an unfinished rune or sequence.
type parser struct {
	state parseState
	rune  [utf8.UTFMax]byte // the bytes of a torn rune
	runeN int
	seq   []byte // inEscape: intermediates; inCSI: parameters and intermediates; inString: an OSC's text
	long  bool   // seq outgrew its limit
	kind  byte   // inString: ']' 'P' '_' '^' 'X'
}

// Write takes what a program wrote to its terminal, in pieces of any size.
func (s *Screen) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		switch s.state {
		case inGround:
			if p = s.skim(p); s.state == inGround {
				p = s.ground(p)
			}
		case inEscape:
			p = s.escape(p)
		case inCSI:
			p = s.csi(p)
		case inString:
			p = s.str(p)
		case inStringEsc:
			p = s.strEsc(p)
		}
	}
	s.settle()
	return n, nil
}

// ground takes text and controls up to the first sequence that is not whole.
func (s *Screen) ground(p []byte) []byte {
	if s.runeN > 0 {
		p = s.torn(p)
	}
	for i := 0; i < len(p); {
		switch b := p[i]; {
		case b >= 0x20 && b < 0x7f:
			j := i + 1
			for j < len(p) && p[j]-0x20 < 0x5f {
				j++
			}
			s.ascii(p[i:j])
			i = j
		case b == 0x1b:
			if i+1 < len(p) && p[i+1] == '[' {
				if n := s.wholeCSI(p[i+2:]); n > 0 {
					i += 2 + n
					continue
				}
			}
			s.begin(inEscape)
			return p[i+1:]
		case b < 0x20:
			s.control(b)
			i++
		case b == 0x7f:
			i++
		default:
			r, size := utf8.DecodeRune(p[i:])
			if r == utf8.RuneError && size == 1 {
				return s.torn(p[i:])
			}
			s.put(r)
			i += size
		}
	}
	return nil
}

// torn takes one rune byte by byte: one that came in pieces, or is none. What
// cannot become a rune is one U+FFFD, as far as it could have.
func (s *Screen) torn(p []byte) []byte {
	for i, b := range p {
		if s.runeN > 0 && !continues(s.rune[:s.runeN], b) {
			s.runeN = 0
			s.put(utf8.RuneError)
			return p[i:]
		}
		s.rune[s.runeN] = b
		s.runeN++
		switch {
		case b < utf8.RuneSelf:
			s.runeN = 0
			return p[i:]
		case !leads(s.rune[0]):
			s.runeN = 0
			s.put(utf8.RuneError)
			return p[i+1:]
		case utf8.FullRune(s.rune[:s.runeN]):
			r, _ := utf8.DecodeRune(s.rune[:s.runeN])
			s.runeN = 0
			s.put(r)
			return p[i+1:]
		}
	}
	return nil
}

// leads says that a rune of more than one byte may begin with b.
func leads(b byte) bool { return b >= 0xc2 && b <= 0xf4 }

// continues says that b can be the byte after the beginning of a rune.
func continues(begin []byte, b byte) bool {
	if len(begin) == 1 {
		switch begin[0] {
		case 0xe0:
			return b >= 0xa0 && b <= 0xbf
		case 0xed:
			return b >= 0x80 && b <= 0x9f
		case 0xf0:
			return b >= 0x90 && b <= 0xbf
		case 0xf4:
			return b >= 0x80 && b <= 0x8f
		}
	}
	return b >= 0x80 && b <= 0xbf
}

func (s *Screen) begin(state parseState) {
	s.state, s.seq, s.long = state, s.seq[:0], false
}

// keep adds a byte to the unfinished sequence, within the limit.
func (s *Screen) keep(b byte, limit int) {
	if len(s.seq) >= limit {
		s.long = true
		return
	}
	s.seq = append(s.seq, b)
}

// control does a C0 control.
func (s *Screen) control(b byte) {
	switch b {
	case '\n', '\v', '\f':
		s.linefeed()
		if s.modes.NewLine {
			s.x = 0
		}
	case '\r':
		s.x = 0
	case '\a':
		s.note(Note{Kind: Bell})
		return
	case '\b':
		s.x = max(s.x-1, 0)
	case '\t':
		s.tab(1)
		s.last = 0
		return
	case 0x0e:
		s.gl = 1
	case 0x0f:
		s.gl = 0
	default:
		return
	}
	s.last, s.wrapNext = 0, s.wrapNext && (b == 0x0e || b == 0x0f)
}

// cancel handles what may come inside of every sequence: controls, CAN and SUB,
// a new ESC, and bytes that belong to no sequence. It says whether b was one.
func (s *Screen) cancel(p []byte) (rest []byte, done bool) {
	switch b := p[0]; {
	case b == 0x1b:
		s.begin(inEscape)
	case b == 0x18 || b == 0x1a:
		s.begin(inGround)
	case b < 0x20:
		s.control(b)
	case b == 0x7f:
	case b >= 0x80:
		s.begin(inGround)
		return p, true
	default:
		return p, false
	}
	return p[1:], true
}

func (s *Screen) escape(p []byte) []byte {
	if rest, done := s.cancel(p); done {
		return rest
	}
	b := p[0]
	p = p[1:]
	if b < 0x30 {
		s.keep(b, 4)
		return p
	}
	if len(s.seq) == 0 && !s.long {
		switch b {
		case '[':
			s.begin(inCSI)
			return p
		case ']', 'P', '_', '^', 'X':
			s.begin(inString)
			s.kind = b
			return p
		}
	}
	s.state = inGround
	if !s.long {
		s.esc(string(s.seq), b)
	}
	return p
}

// csi takes a CSI sequence that came in pieces or has controls inside.
func (s *Screen) csi(p []byte) []byte {
	if rest, done := s.cancel(p); done {
		return rest
	}
	b := p[0]
	if b < 0x40 {
		s.keep(b, maxSequence)
		return p[1:]
	}
	s.state = inGround
	if !s.long {
		s.sequence(s.seq, b)
	}
	return p[1:]
}

// wholeCSI does a CSI sequence that lies in p as a whole, without its ESC [,
// and says how long it was; 0 if it does not.
func (s *Screen) wholeCSI(p []byte) int {
	for i, b := range p {
		if b >= 0x40 && b < 0x7f {
			if i <= maxSequence {
				s.sequence(p[:i], b)
			}
			return i + 1
		}
		if b < 0x20 || b >= 0x7f {
			return 0
		}
	}
	return 0
}

// str takes the inside of a string. Only an OSC's is kept.
func (s *Screen) str(p []byte) []byte {
	for i, b := range p {
		switch {
		case b == 0x1b:
			s.state = inStringEsc
			return p[i+1:]
		case b == 0x18 || b == 0x1a:
			s.begin(inGround)
			return p[i+1:]
		case b == '\a' && s.kind == ']':
			s.state = inGround
			s.osc("\a")
			return p[i+1:]
		case s.kind != ']':
			rest := bytes.IndexAny(p[i:], "\x1b\x18\x1a")
			if rest < 0 {
				return nil
			}
			return p[i+rest:]
		case b >= 0x20 && b != 0x7f:
			s.keep(b, maxString)
		}
	}
	return nil
}

// strEsc takes what follows an ESC inside a string: a backslash ends it, with
// anything else the string is void and a new sequence has begun.
func (s *Screen) strEsc(p []byte) []byte {
	if p[0] != '\\' {
		s.begin(inEscape)
		return p
	}
	s.state = inGround
	if s.kind == ']' {
		s.osc("\x1b\\")
	}
	return p[1:]
}
