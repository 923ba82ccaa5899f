package screen

import "bytes"

// flood is how much must come at once to be looked at as a flood.
const flood = 8 << 10 // bytes

// skipFlood takes lines off the front of p that those behind them push out of the scrollback, if they are
// nothing but text and styles. The emulator draws 2 MB/s; a program that prints 200 MB would wait for it
// for minutes.
func (s *Screen) skipFlood(p []byte) []byte {
	if len(p) < flood || s.strip.state != inText {
		return p
	}
	end := len(p)
	for range s.keep + s.rows + 1 {
		if end = bytes.LastIndexByte(p[:end], '\n'); end < 0 {
			return p
		}
	}
	skipped, rest := p[:end+1], p[end+1:]
	styles, ok := stylesOf(skipped)
	if !ok {
		return p
	}
	s.scrolled += uint64(bytes.Count(skipped, []byte("\n")) - 1) // and the one that is drawn
	s.feed(append(styles, "\r\n"...))
	return rest
}

// stylesOf are the styles of lines that still count at their end; false: there is more in them than text
// and styles.
func stylesOf(lines []byte) (styles []byte, ok bool) {
	for i := 0; i < len(lines); i++ {
		switch b := lines[i]; {
		case b == escape:
			end := i + bytes.IndexByte(lines[i:], 'm') + 1
			style := lines[i:max(i, end)]
			if len(style) < 3 || style[1] != '[' || len(bytes.Trim(style[2:len(style)-1], "0123456789;:")) > 0 {
				return nil, false
			}
			if string(style) == "\x1b[m" || string(style) == "\x1b[0m" {
				styles = nil
			}
			styles = append(styles, style...)
			i = end - 1
		case b < ' ' && b != '\r' && b != '\n' && b != '\t':
			return nil, false
		}
	}
	return styles, true
}
