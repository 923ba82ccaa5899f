package screen

import (
	"bytes"
	"regexp"
)

// flood is how much must come at once to be looked at as a flood.
const flood = 8 << 10 // bytes

var style = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// skipFlood takes lines off the front of p that those behind them push out of the
// scrollback, if they are nothing but text and styles. The emulator draws 2 MB/s;
// a program that prints 200 MB would wait for it for minutes.
func (s *Screen) skipFlood(p []byte) []byte {
	keep := s.keep + s.rows
	if len(p) < flood || s.strip.state != inText || bytes.Count(p, []byte("\r\n")) < 2*keep {
		return p
	}
	end := len(p)
	for range keep + 1 {
		end = bytes.LastIndexByte(p[:end], '\n')
	}
	skipped, rest := p[:end+1], p[end+1:]
	if bytes.ContainsFunc(style.ReplaceAll(skipped, nil), movesCursor) {
		return p
	}
	s.scrolled += uint64(bytes.Count(skipped, []byte("\n")) - 1) // and the one that is drawn
	s.feed(append(bytes.Join(style.FindAll(skipped, -1), nil), "\r\n"...))
	return rest
}

func movesCursor(r rune) bool { return r < 0x20 && r != '\r' && r != '\n' && r != '\t' }
