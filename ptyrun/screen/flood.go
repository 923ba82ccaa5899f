package screen

import (
	"bytes"

	"github.com/charmbracelet/x/ansi"
)

const (
	floodSize  = 8 << 10   // bytes, from which on text may wait to be drawn
	maxUndrawn = 512 << 10 // that may wait
)

// isFlood takes lines off the front of what is not drawn that those behind them push out of the scrollback,
// and reports whether the rest may wait for more: there is nothing in it but text and styles. The emulator
// draws 2 MB/s; a program that prints 200 MB would wait for it for minutes.
func (s *Screen) isFlood() bool {
	p := s.undrawn
	if len(p) < floodSize || len(s.partialString) > 0 {
		return false
	}
	end := len(p)
	for n := s.scrollback + s.rows + 1; n > 0 && end >= 0; n-- {
		end = bytes.LastIndexByte(p[:end], '\n')
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

// stylesOf are the styles of lines that still count at their end; false: there is more in them than text
// and styles. A last sequence that has not ended is none yet.
func stylesOf(lines []byte) (styles []byte, ok bool) {
	for i := 0; i < len(lines); i++ {
		switch b := lines[i]; {
		case b == escape:
			sequence, _, n, state := ansi.DecodeSequence(lines[i:], ansi.NormalState, nil)
			if state != ansi.NormalState {
				return styles, state != ansi.StringState
			}
			i += n - 1
			parameters, isCSI := bytes.CutPrefix(sequence, []byte("\x1b["))
			switch final := bytes.TrimLeft(parameters, "0123456789;:"); {
			case isCSI && string(final) == "m":
				if string(sequence) == "\x1b[m" || string(sequence) == "\x1b[0m" {
					styles = nil
				}
				styles = append(styles, sequence...)
			case isCSI && string(final) == "K": // of grep and compilers, behind each style
			default:
				return nil, false
			}
		case b < ' ' && b != '\r' && b != '\n' && b != '\t':
			return nil, false
		}
	}
	return styles, true
}
