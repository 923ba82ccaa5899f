package screen

import (
	"bytes"

	"github.com/charmbracelet/x/ansi"
)

const (
	floodSize  = 8 << 10   // undrawn bytes from which on drawing may wait, even if there is no line to drop
	maxUndrawn = 512 << 10 // bytes that may wait
)

// isFlood drops undrawn lines that the lines after them will scroll out of the scrollback, and reports whether the rest
// may wait for more: whether it is only text and styles. The emulator draws 2 MB/s: 200 MB would take it minutes.
func (s *Screen) isFlood() bool {
	p := s.undrawn
	end := len(p)
	for n := s.scrollback + s.rows + 1; n > 0 && end >= 0; n-- {
		end = bytes.LastIndexByte(p[:end], '\n')
	}
	if end < 0 && len(p) < floodSize || len(s.partialString) > 0 {
		return false
	}
	skipped, rest := p[:end+1], p[end+1:]
	styles, ok := stylesOf(skipped)
	if _, isText := stylesOf(rest); !ok || !isText {
		return false
	}
	if len(skipped) > 0 {
		s.scrolled += uint64(bytes.Count(skipped, []byte("\n")))
		s.partialRune = nil
		s.feed(append(styles, '\r'))
		s.undrawn = append(p[:0], rest...)
	}
	return len(s.undrawn) < maxUndrawn
}

// stylesOf returns the styles that still apply at the end of lines; false: there is more in them than text and styles.
// An incomplete sequence at the end is ignored.
func stylesOf(lines []byte) (styles []byte, ok bool) {
	for i := 0; i < len(lines); i++ {
		b := lines[i]
		switch {
		case b == '\x1b':
			sequence, _, n, state := ansi.DecodeSequence(lines[i:], ansi.NormalState, nil)
			if state != ansi.NormalState {
				return styles, state != ansi.StringState
			}
			i += n - 1
			parameters, isCSI := bytes.CutPrefix(sequence, []byte("\x1b["))
			final := bytes.TrimLeft(parameters, "0123456789;:")
			switch {
			case isCSI && string(final) == "m":
				if string(sequence) == "\x1b[m" || string(sequence) == "\x1b[0m" {
					styles = nil
				}
				styles = append(styles, sequence...)
			case isCSI && string(final) == "K": // grep and compilers send it after each style
			default:
				return nil, false
			}
		case b < ' ' && b != '\r' && b != '\n' && b != '\t', b == leadsC1 && i+1 < len(lines) && lines[i+1] < 0xa0:
			return nil, false
		}
	}
	return styles, true
}
