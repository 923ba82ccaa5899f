package screen

// stripper takes the strings that programs send to their terminal out of a stream: OSC, DCS, APC, PM and SOS. They may
// be torn anywhere. Only BEL (for OSC) and ESC \ end one; the byte 0x9C does not, since it stands in the UTF-8 of "✳".
type stripper struct {
	state stripState
	kind  byte // the byte behind the ESC that began the string
	text  []byte
}

type stripState uint8

const (
	inText stripState = iota
	afterEscape
	inString
	afterEscapeInString
)

const (
	escape    = 0x1b
	bell      = 0x07
	cancel    = 0x18
	sub       = 0x1a
	maxString = 4096 // bytes of a string that are kept
)

// filter returns p without strings, and calls osc for each OSC string that has ended, with what ended it.
func (s *stripper) filter(p []byte, osc func(text, end string)) []byte {
	out := make([]byte, 0, len(p)+2)
	for _, b := range p {
		switch s.state {
		case inText:
			if b == escape {
				s.state = afterEscape
			} else {
				out = append(out, b)
			}
		case afterEscape:
			out = s.escaped(out, b)
		case inString:
			s.inString(b, osc)
		case afterEscapeInString:
			if b == '\\' {
				s.end(osc, "\x1b\\")
				continue
			}
			s.state = afterEscape // the string was broken off by another sequence
			out = s.escaped(out, b)
		}
	}
	return out
}

func (s *stripper) escaped(out []byte, b byte) []byte {
	switch b {
	case ']', 'P', '_', '^', 'X':
		s.state, s.kind, s.text = inString, b, s.text[:0]
		return out
	case escape:
		return append(out, escape)
	}
	s.state = inText
	return append(out, escape, b)
}

func (s *stripper) inString(b byte, osc func(text, end string)) {
	switch {
	case b == escape:
		s.state = afterEscapeInString
	case b == bell && s.kind == ']':
		s.end(osc, "\a")
	case b == cancel || b == sub:
		s.state = inText
	case len(s.text) < maxString:
		s.text = append(s.text, b)
	}
}

func (s *stripper) end(osc func(text, end string), with string) {
	s.state = inText
	if s.kind == ']' {
		osc(string(s.text), with)
	}
}
